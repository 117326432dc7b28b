package management

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/move-hook/move-hook/pkg/adopt"
)

// Tell writes a Kubernetes Event on the object, so that `kubectl describe` shows
// it. What was said last about an object is not said again: that is remembered for
// this process, for saying only. Best effort: the error is for the log.
func (c *Cluster) Tell(ctx context.Context, e adopt.Event) error {
	if e.On.IsZero() {
		return nil
	}
	words := e.Reason + ": " + e.Message
	c.mu.Lock()
	same := c.said[e.On.ID] == words
	c.said[e.On.ID] = words
	c.mu.Unlock()
	if same {
		return nil
	}
	kind := corev1.EventTypeNormal
	if e.Warning {
		kind = corev1.EventTypeWarning
	}
	namespace := e.On.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	now := metav1.Now()
	_, err := c.clientset.CoreV1().Events(namespace).Create(ctx, &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "move-hook-", Namespace: namespace},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: e.On.APIVersion, Kind: e.On.Kind, Namespace: e.On.Namespace, Name: e.On.Name,
			UID: e.On.UID, ResourceVersion: e.On.ResourceVersion,
		},
		Reason: e.Reason, Message: truncate(e.Message), Type: kind, Count: 1,
		FirstTimestamp: now, LastTimestamp: now,
		Source:              corev1.EventSource{Component: FieldManager},
		ReportingController: FieldManager,
	}, metav1.CreateOptions{FieldManager: FieldManager})
	if err != nil {
		return fmt.Errorf("writing an Event on %s: %w", e.On.ID, err)
	}
	return nil
}

// truncate keeps a message within what the API server takes (1024 bytes).
func truncate(s string) string {
	const limit = 1000
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + " …"
}
