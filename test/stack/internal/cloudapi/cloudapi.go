// Package cloudapi is what the stack and its cloud process say to each other:
// one JSON value a line, requests on the cloud's stdin, answers on its stdout.
// When stdin ends, so does the cloud.
package cloudapi

// Request asks for exactly one thing.
type Request struct {
	Start *Start `json:"start,omitempty"`
	// Stop names the management cluster whose controllers shall stop. The
	// machines of its workload clusters go on running.
	Stop string `json:"stop,omitempty"`
}

// Start runs the Dev provider's controllers and webhooks for one management cluster;
// without a CertDir the controllers alone.
type Start struct {
	Name       string `json:"name"`
	Kubeconfig string `json:"kubeconfig"`
	HealthAddr string `json:"healthAddr"`
	CertDir    string `json:"certDir"`
	Port       int    `json:"port"` // of the webhook server
}

// Answer to a request; an empty Error means done.
type Answer struct {
	Error string `json:"error,omitempty"`
}
