// Command stack-cloud is the cloud of the test stack: the in-memory backend of
// Cluster API's Dev provider, which keeps machines, and the API servers and
// etcd members of workload clusters, in this process's memory. It runs the
// provider's controllers for any number of management clusters over the one
// backend, so that a workload cluster outlives the management cluster it was
// made from, as it does on a real cloud. Package cloudapi is its interface.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"k8s.io/klog/v2"
	"sigs.k8s.io/cluster-api/feature"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/move-hook/move-hook/test/stack/internal/cloudapi"
)

func main() {
	host := flag.String("host", "127.0.0.1", "address of this machine at which management clusters reach the API servers of workload clusters")
	firstPort := flag.Int("first-port", 20000, "first port for API servers of workload clusters; the one before it serves the backend's debug page")
	lastPort := flag.Int("last-port", 20099, "last port for API servers of workload clusters")
	klog.InitFlags(nil)
	flag.Parse()
	ctrl.SetLogger(klog.Background())

	// The provider's webhooks refuse templates of a ClusterClass without it.
	err := feature.MutableGates.SetFromMap(map[string]bool{string(feature.ClusterTopology): true})
	if err == nil {
		err = serve(context.Background(), *host, *firstPort, *lastPort, os.Stdin, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(ctx context.Context, host string, firstPort, lastPort int, in io.Reader, out io.Writer) error {
	cloud, err := newCloud(ctx, host, int32(firstPort), int32(lastPort))
	if err != nil {
		return err
	}
	requests, answers := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var request cloudapi.Request
		if err := requests.Decode(&request); errors.Is(err, io.EOF) {
			return nil // the stack is gone
		} else if err != nil {
			return err
		}
		var answer cloudapi.Answer
		if err := cloud.do(ctx, request); err != nil {
			answer.Error = err.Error()
		}
		if err := answers.Encode(answer); err != nil {
			return err
		}
	}
}
