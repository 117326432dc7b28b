package scaledown

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/move-hook/move-hook/internal/management"
	"github.com/move-hook/move-hook/internal/pivot/flow"
	"github.com/move-hook/move-hook/pkg/graph"
	"github.com/move-hook/move-hook/pkg/labels"
)

const (
	// providerLabel is on everything that clusterctl installs for a provider.
	providerLabel = "cluster.x-k8s.io/provider"
	// patience is how long a Deployment may take to end its Pods.
	patience = 5 * time.Minute
	// poll is how often it is looked at meanwhile.
	poll = time.Second
)

// ErrNoProviders says that there is no Deployment of a provider, so nothing that
// could be scaled down. Whatever runs the controllers has to be stopped in its own way.
var ErrNoProviders = errors.New("no Deployment of a provider was found")

// providerKind is clusterctl's inventory of installed providers.
var providerKind = graph.GroupKind{Group: "clusterctl.cluster.x-k8s.io", Kind: "Provider"}

// Providers are the controllers of one management cluster.
type Providers struct {
	Cluster *management.Cluster
	// Who scales them down, for the mark on what was changed; "move-hook arm" when empty.
	Who string
	// Progress is told every write when it has been made.
	Progress flow.Progress
}

// State is how the providers stand.
type State struct {
	// Down: at least one Deployment is scaled to zero by us.
	Down bool
	// Since is when the first of them was; what was created later has arrived meanwhile.
	Since time.Time
}

// State looks at the Deployments, with one request where the inventory is known.
func (p Providers) State(ctx context.Context) (State, error) {
	all, err := p.deployments(ctx)
	if err != nil {
		return State{}, err
	}
	var s State
	for i := range all {
		d := &all[i]
		if _, ours := d.Annotations[graph.ReplicasAnnotation]; !ours || replicas(d) != 0 {
			continue
		}
		// A mark without a time that can be read is of long ago: then everything has arrived since.
		holder, _ := labels.HolderOf(labels.Meta{Annotations: d.Annotations})
		if !s.Down || holder.Since.Before(s.Since) {
			s.Since = holder.Since
		}
		s.Down = true
	}
	return s, nil
}

// Down scales every provider's Deployment to zero and returns once no Pod of them
// is left. A Deployment that its user had at zero is left alone. The writes are
// those that were made, also beside an error; with dryRun the server judges them
// and stores nothing.
func (p Providers) Down(ctx context.Context, dryRun bool) ([]flow.Write, error) {
	all, err := p.deployments(ctx)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%w on %s: none carries the label %s; stop whatever runs the controllers there in its own way", ErrNoProviders, p.Cluster.Name(), providerLabel)
	}
	w := &writer{Providers: p, dryRun: dryRun}
	for i := range all {
		if err := w.deployment(ctx, &all[i], p.down); err != nil {
			return w.writes, err
		}
	}
	if err := w.webhooks(ctx, ignore); err != nil {
		return w.writes, err
	}
	if dryRun {
		return w.writes, nil
	}
	return w.writes, p.waitStopped(ctx)
}

// Up gives the webhooks their failure policy back, and then every Deployment that
// was scaled down its replicas: as long as something is left to do, State is Down,
// also after a kill or a refusal. It does not wait for the controllers.
func (p Providers) Up(ctx context.Context, dryRun bool) ([]flow.Write, error) {
	all, err := p.deployments(ctx)
	if err != nil {
		return nil, err
	}
	w := &writer{Providers: p, dryRun: dryRun}
	if err := w.webhooks(ctx, fail); err != nil {
		return w.writes, err
	}
	for i := range all {
		if err := w.deployment(ctx, &all[i], up); err != nil {
			return w.writes, err
		}
	}
	return w.writes, nil
}

// deployments are those of providers, sorted: by their label, and where clusterctl
// keeps an inventory only in its namespaces.
func (p Providers) deployments(ctx context.Context) ([]appsv1.Deployment, error) {
	within, err := p.namespaces(ctx)
	if err != nil {
		return nil, err
	}
	list, err := p.Cluster.Clientset().AppsV1().Deployments(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: providerLabel})
	if err != nil {
		return nil, fmt.Errorf("listing the Deployments of providers on %s: %w", p.Cluster.Name(), err)
	}
	found := slices.DeleteFunc(list.Items, func(d appsv1.Deployment) bool { return len(within) > 0 && !within[d.Namespace] })
	slices.SortFunc(found, func(a, b appsv1.Deployment) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return found, nil
}

// namespaces of clusterctl's inventory; none where somebody else installed.
func (p Providers) namespaces(ctx context.Context) (map[string]bool, error) {
	d, err := p.Cluster.Discover(ctx)
	if err != nil {
		return nil, err
	}
	kind, ok := d.Find(providerKind)
	if !ok {
		return nil, nil
	}
	inventory, err := p.Cluster.Stream(kind, "", false).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing clusterctl's Providers on %s: %w", p.Cluster.Name(), err)
	}
	within := map[string]bool{}
	for _, o := range inventory {
		within[o.Namespace] = true
	}
	return within, nil
}

// down is the patch that scales to zero, and why; nil for nothing to do.
func (p Providers) down(d *appsv1.Deployment) (map[string]any, string, error) {
	n := replicas(d)
	if n == 0 {
		return nil, "", nil // by us or by its user
	}
	by := labels.Holder{Who: cmp.Or(p.Who, "move-hook arm"), Since: p.Cluster.Now()}
	// Also where a mark is there already: somebody has scaled up since, and that is what comes back.
	annotations := map[string]any{graph.ReplicasAnnotation: strconv.Itoa(int(n)), labels.Held: by.String()}
	return patch(d, annotations, map[string]any{"replicas": 0}), "scaled to 0", nil
}

// up is the patch that gives the replicas back. Where somebody has done so
// already, theirs stay.
func up(d *appsv1.Deployment) (map[string]any, string, error) {
	mark, ours := d.Annotations[graph.ReplicasAnnotation]
	if !ours {
		return nil, "", nil
	}
	annotations := map[string]any{graph.ReplicasAnnotation: nil, labels.Held: nil}
	if replicas(d) != 0 {
		return patch(d, annotations, nil), "released", nil
	}
	n, err := strconv.ParseInt(mark, 10, 32)
	if err != nil || n < 1 {
		return nil, "", fmt.Errorf("Deployment %s/%s: annotation %s is %q and says no number of replicas: scale it by hand, then run this again",
			d.Namespace, d.Name, graph.ReplicasAnnotation, mark)
	}
	return patch(d, annotations, map[string]any{"replicas": n}), "scaled to " + mark, nil
}

func patch(o metav1.Object, annotations, spec map[string]any) map[string]any {
	p := map[string]any{"metadata": map[string]any{
		"uid": o.GetUID(), "resourceVersion": o.GetResourceVersion(), "annotations": annotations,
	}}
	if spec != nil {
		p["spec"] = spec
	}
	return p
}

// replicas that are wanted; the API server has filled in its default of one.
func replicas(d *appsv1.Deployment) int32 {
	if d.Spec.Replicas == nil {
		return 1
	}
	return *d.Spec.Replicas
}

// waitStopped waits until the Deployment controller has seen the zero and no Pod
// is left: one that is ending still reconciles.
func (p Providers) waitStopped(ctx context.Context) error {
	var left []string
	err := wait.PollUntilContextTimeout(ctx, poll, patience, true, func(ctx context.Context) (bool, error) {
		all, err := p.deployments(ctx)
		if err != nil {
			return false, err
		}
		left = nil
		for i := range all {
			d := &all[i]
			if replicas(d) != 0 {
				return false, fmt.Errorf("Deployment %s/%s was scaled up by somebody else: find out who manages it, then run this again", d.Namespace, d.Name)
			}
			running, err := p.running(ctx, d)
			if err != nil {
				return false, err
			}
			if running != "" {
				left = append(left, running)
			}
		}
		return len(left) == 0, nil
	})
	if wait.Interrupted(err) && len(left) > 0 {
		return fmt.Errorf("controllers still run: %s: run this again: %w", strings.Join(left, ", "), err)
	}
	return err
}

// running says what of a Deployment still runs; empty for nothing.
func (p Providers) running(ctx context.Context, d *appsv1.Deployment) (string, error) {
	name := fmt.Sprintf("Deployment %s/%s", d.Namespace, d.Name)
	if d.Status.ObservedGeneration < d.Generation || d.Status.Replicas > 0 {
		return fmt.Sprintf("%s (%d)", name, d.Status.Replicas), nil
	}
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	pods, err := p.Cluster.Clientset().CoreV1().Pods(d.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector.String()})
	switch {
	case err != nil:
		return "", fmt.Errorf("listing the Pods of %s: %w", name, err)
	case len(pods.Items) > 0:
		return fmt.Sprintf("%s (%d Pods are ending)", name, len(pods.Items)), nil
	}
	return "", nil
}

// ArrivedOutside names the Clusters that were created since the providers went
// down and that are not of those that the caller knows: whoever scales up lets
// controllers loose on these too. Sorted.
func (p Providers) ArrivedOutside(ctx context.Context, since time.Time, known map[graph.ID]bool) ([]graph.ID, error) {
	d, err := p.Cluster.Discover(ctx)
	if err != nil {
		return nil, err
	}
	kind, ok := d.Find(graph.Cluster)
	if !ok {
		return nil, nil
	}
	all, err := p.Cluster.Stream(kind, "", false).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing all Clusters on %s: %w", p.Cluster.Name(), err)
	}
	outside := map[graph.ID]bool{}
	for _, o := range all {
		if !o.Created.Before(since.Truncate(time.Second)) && !known[o.ID] {
			outside[o.ID] = true
		}
	}
	return slices.SortedFunc(maps.Keys(outside), graph.ID.Compare), nil
}
