package scenario

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// MachineEvent is one Machine that came or went.
type MachineEvent struct {
	Name string
	// Gone says that it was deleted, otherwise it was created.
	Gone bool
	// ForMove says that clusterctl marked the object before it deleted it.
	ForMove bool
}

// String is "+ name", "- name" or "- name (moved)".
func (e MachineEvent) String() string {
	switch {
	case !e.Gone:
		return "+ " + e.Name
	case e.ForMove:
		return "- " + e.Name + " (moved)"
	default:
		return "- " + e.Name
	}
}

// MachineWatch remembers every Machine of a namespace that comes or goes.
type MachineWatch struct {
	watch watch.Interface
	done  chan struct{}

	mu      sync.Mutex
	events  []MachineEvent
	stopped bool
	err     error
}

// WatchMachines begins now: Machines that exist already are not events.
func WatchMachines(ctx context.Context, m Management, namespace string) (*MachineWatch, error) {
	list := &clusterv1.MachineList{}
	if err := m.Client().List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing Machines on the %s: %w", m.Name(), err)
	}
	w, err := m.Client().Watch(ctx, list, client.InNamespace(namespace), &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
	if err != nil {
		return nil, fmt.Errorf("watching Machines on the %s: %w", m.Name(), err)
	}
	mw := &MachineWatch{watch: w, done: make(chan struct{})}
	go mw.run(m.Name())
	return mw, nil
}

func (w *MachineWatch) run(name string) {
	defer close(w.done)
	for event := range w.watch.ResultChan() {
		w.mu.Lock()
		machine, ok := event.Object.(*clusterv1.Machine)
		switch {
		case w.stopped:
			// Closing the connection is an error event too.
		case !ok:
			w.err = fmt.Errorf("the watch of Machines on the %s broke: %v", name, event.Object)
		case event.Type == watch.Added:
			w.events = append(w.events, MachineEvent{Name: machine.Name})
		case event.Type == watch.Deleted:
			_, moved := machine.Annotations[clusterctlv1.DeleteForMoveAnnotation]
			w.events = append(w.events, MachineEvent{Name: machine.Name, Gone: true, ForMove: moved})
		}
		w.mu.Unlock()
	}
}

// Stop ends the watch and gives what came and went, in order. An error means that the watch was not complete.
func (w *MachineWatch) Stop() ([]MachineEvent, error) {
	select {
	case <-w.done:
		if w.err == nil {
			w.err = fmt.Errorf("the watch of Machines ended by itself: it proves nothing")
		}
	default:
	}
	w.mu.Lock()
	w.stopped = true
	w.mu.Unlock()
	w.watch.Stop()
	<-w.done
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.events, w.err
}
