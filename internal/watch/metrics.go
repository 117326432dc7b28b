package watch

import (
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/move-hook/move-hook/pkg/adopt"
)

// phases in the order of a Cluster's way; a metric has one of each, also of those
// in which no Cluster is.
var phases = []adopt.Phase{
	adopt.Deferred, adopt.Blocked, adopt.Adopting, adopt.AwaitingStatus, adopt.Releasing, adopt.Watching, adopt.Adopted,
}

// meter measures what the loop does. It is for those who look from outside: no
// pass reads it. A nil meter measures nothing.
type meter struct {
	registry *prometheus.Registry
	patches  prometheus.Counter
	deferral prometheus.Histogram
	// loop is the present one; nil while this process stands by.
	loop atomic.Pointer[loop]

	clusters, awaited *prometheus.Desc
}

func newMeter() *meter {
	m := &meter{
		registry: prometheus.NewRegistry(),
		patches: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "move_hook_patches_total", Help: "Writes that changed an object.",
		}),
		deferral: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "move_hook_deferral_seconds", Help: "How long a Cluster was deferred, each time it ceased to be.",
			Buckets: []float64{1, 5, 15, 30, 60, 120, 300, 600, 1800, 3600, 4 * 3600, 12 * 3600, 24 * 3600},
		}),
		clusters: prometheus.NewDesc("move_hook_clusters", "Clusters that take part in a pivot, by phase.", []string{"phase"}, nil),
		awaited:  prometheus.NewDesc("move_hook_awaited_objects", "What is awaited before Clusters can be adopted and released.", nil, nil),
	}
	m.registry.MustRegister(m, m.patches, m.deferral, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *meter) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// wrote counts a write.
func (m *meter) wrote() {
	if m != nil {
		m.patches.Inc()
	}
}

// left is told that a Cluster has left a phase after a time.
func (m *meter) left(was passed, after time.Duration) {
	if m != nil && was.mine && was.plan.Phase == adopt.Deferred {
		m.deferral.Observe(after.Seconds())
	}
}

// Describe is for the registry.
func (m *meter) Describe(out chan<- *prometheus.Desc) {
	out <- m.clusters
	out <- m.awaited
}

// Collect is for the registry: it counts what the loop knows at this moment.
func (m *meter) Collect(out chan<- prometheus.Metric) {
	in, awaited := map[adopt.Phase]int{}, 0
	if l := m.loop.Load(); l != nil {
		in, awaited = l.census()
	}
	for _, phase := range phases {
		out <- prometheus.MustNewConstMetric(m.clusters, prometheus.GaugeValue, float64(in[phase]), string(phase))
	}
	out <- prometheus.MustNewConstMetric(m.awaited, prometheus.GaugeValue, float64(awaited))
}

// census counts the Clusters of a pivot by phase, and what they await.
func (l *loop) census() (in map[adopt.Phase]int, awaited int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	in = map[adopt.Phase]int{}
	for _, s := range l.clusters {
		if s.passes == 0 || !s.last.mine {
			continue
		}
		in[s.last.plan.Phase]++
		if s.last.plan.Phase != adopt.Watching {
			// One that is being watched awaits only time.
			awaited += len(s.last.plan.Waiting)
		}
	}
	return in, awaited
}
