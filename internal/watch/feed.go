package watch

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/move-hook/move-hook/pkg/graph"
)

const (
	// firstRelist and lastRelist bound the delay before a broken watch is tried again.
	firstRelist = 500 * time.Millisecond
	lastRelist  = 15 * time.Second
)

// feed keeps the store true to one stream of objects. A client-go Reflector does
// the listing and watching and writes into it; there is no second copy.
type feed struct {
	place
	// list and watch ask the server; convert reduces what comes to what decisions read.
	list    func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch   func(context.Context, metav1.ListOptions) (apiwatch.Interface, error)
	convert func(runtime.Object) (graph.Object, error)

	store   *store
	contact *contact
	// changed is told every object that came, changed or went, with the generation
	// in which graphs show it.
	changed func(o graph.Object, generation uint64)
	// known is told when the stream became complete or ceased to be, with the
	// server's words.
	known func(p place, listed bool, generation uint64, why error)

	// whole: nothing that another feed has stored can be kept. Cleared by the first list.
	whole bool
	// said is why the stream is not complete, as it was told last.
	said string
	once sync.Once
	// tried is closed once the stream is complete or has failed for the first time.
	tried chan struct{}
}

// run works until ctx ends.
func (f *feed) run(ctx context.Context) {
	reflector := cache.NewReflectorWithOptions(
		cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{ListWithContextFunc: f.ask, WatchFuncWithContext: f.follow}, nil),
		nil, f, cache.ReflectorOptions{Name: "post", TypeDescription: f.kind.String()})
	delay := firstRelist
	for ctx.Err() == nil {
		begin := time.Now()
		err := reflector.ListAndWatchWithContext(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil && lasting(err) {
			f.tell(false, err)
		}
		f.once.Do(func() { close(f.tried) })
		if time.Since(begin) > 2*lastRelist {
			delay = firstRelist
		}
		select {
		case <-ctx.Done():
		case <-time.After(delay):
		}
		delay = min(2*delay, lastRelist)
	}
}

func (f *feed) ask(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	list, err := f.list(ctx, o)
	f.report(ctx, err)
	return list, err
}

func (f *feed) follow(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
	w, err := f.watch(ctx, o)
	f.report(ctx, err)
	return w, err
}

func (f *feed) report(ctx context.Context, err error) {
	if ctx.Err() == nil {
		f.contact.report(err)
	}
}

// lasting: the server has answered that it will not show these objects. What
// merely interrupts a watch leaves what is known in force: every write carries
// UID and resourceVersion.
func lasting(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err)
}

func (f *feed) tell(listed bool, why error) {
	words := ""
	if why != nil {
		words = why.Error()
	}
	changed, generation := f.store.setListed(f.place, listed)
	if changed || words != f.said {
		f.said = words
		f.known(f.place, listed, generation, why)
	}
}

// Add is called by the Reflector.
func (f *feed) Add(o any) error { return f.Update(o) }

// Update is called by the Reflector.
func (f *feed) Update(o any) error {
	object, err := f.object(o)
	if err != nil {
		return err
	}
	before, existed, generation := f.store.put(object)
	if existed && before.UID == object.UID && before.ResourceVersion == object.ResourceVersion {
		return nil
	}
	if existed {
		// What it belonged to before may be what has to wake up.
		f.changed(before, generation)
	}
	f.changed(object, generation)
	return nil
}

// Delete is called by the Reflector.
func (f *feed) Delete(o any) error {
	object, err := f.object(o)
	if err != nil {
		return err
	}
	if before, existed, generation := f.store.remove(object); existed {
		f.changed(before, generation)
	}
	return nil
}

// Replace is called by the Reflector with a complete list.
func (f *feed) Replace(list []any, _ string) error {
	content := make([]graph.Object, 0, len(list))
	for _, o := range list {
		object, err := f.object(o)
		if err != nil {
			return err
		}
		content = append(content, object)
	}
	changed, generation := f.store.replace(f.place, content, f.whole)
	f.whole = false
	f.tell(true, nil)
	for _, object := range changed {
		f.changed(object, generation)
	}
	f.once.Do(func() { close(f.tried) })
	return nil
}

// Resync is called by the Reflector; there is nothing to do.
func (f *feed) Resync() error { return nil }

func (f *feed) object(o any) (graph.Object, error) {
	typed, ok := o.(runtime.Object)
	if !ok {
		return graph.Object{}, errors.New("not an API object")
	}
	return f.convert(typed)
}
