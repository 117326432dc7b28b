package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"

	"github.com/move-hook/move-hook/internal/report"
)

// The flags here are clusterctl's, with clusterctl's meaning.

// sides are the two management clusters of a command.
type sides struct {
	source, target kubeconfig
}

type kubeconfig struct{ path, context string }

func (k kubeconfig) given() bool { return k != kubeconfig{} }

// addSource adds --kubeconfig and --kubeconfig-context; what says what they name here.
func (s *sides) addSource(fs *pflag.FlagSet, what string) {
	fs.StringVar(&s.source.path, "kubeconfig", "", "path to the kubeconfig `file` of "+what)
	fs.StringVar(&s.source.context, "kubeconfig-context", "", "`context` to use in it; empty for its current one")
}

// addTarget adds --to-kubeconfig and --to-kubeconfig-context.
func (s *sides) addTarget(fs *pflag.FlagSet, what string) {
	fs.StringVar(&s.target.path, "to-kubeconfig", "", "path to the kubeconfig `file` of "+what)
	fs.StringVar(&s.target.context, "to-kubeconfig-context", "", "`context` to use in it; empty for its current one")
}

// judged reads the flags of a command that runs on the target: with only
// --kubeconfig given, that is the target; with both, it is the source.
func (s sides) judged() (target kubeconfig, source kubeconfig, hasSource bool) {
	if s.target.given() {
		return s.target, s.source, s.source.given()
	}
	return s.source, kubeconfig{}, false
}

// oneTarget refuses both sides where there is only one.
func (s sides) oneTarget() error {
	if s.source.given() && s.target.given() {
		return fmt.Errorf("--kubeconfig and --to-kubeconfig both name the target here: give one of them")
	}
	return nil
}

// scope is which Clusters a command is about.
type scope struct {
	namespace string
	all       bool
}

func (s *scope) add(fs *pflag.FlagSet) {
	s.addNamespace(fs)
	fs.BoolVarP(&s.all, "all-namespaces", "A", false, "Clusters of all namespaces")
}

// addNamespace adds -n alone, for what works in one namespace at a time.
func (s *scope) addNamespace(fs *pflag.FlagSet) {
	fs.StringVarP(&s.namespace, "namespace", "n", "", "`namespace` of the Clusters; empty for the one of the kubeconfig context")
}

func (s scope) validate() error {
	if s.all && s.namespace != "" {
		return fmt.Errorf("-A (--all-namespaces) and -n (--namespace) contradict each other: give one of them")
	}
	return nil
}

// checkNames says early what names would say late.
func (s scope) checkNames(args []string) error {
	_, err := s.names(args, "default")
	return err
}

// names reads positional Clusters, NAME or NAMESPACE/NAME. namespace is the one
// that the command works in.
func (s scope) names(args []string, namespace string) ([]types.NamespacedName, error) {
	var names []types.NamespacedName
	for _, arg := range args {
		ns, name, qualified := strings.Cut(arg, "/")
		switch {
		case !qualified && s.all:
			return nil, fmt.Errorf("cluster %q: with -A a Cluster is named NAMESPACE/NAME", arg)
		case !qualified:
			ns, name = namespace, arg
		case !s.all && s.namespace != "" && ns != s.namespace:
			return nil, fmt.Errorf("cluster %q is not in namespace %q: give one namespace", arg, s.namespace)
		}
		if ns == "" || name == "" || strings.Contains(name, "/") {
			return nil, fmt.Errorf("cluster %q: a Cluster is named NAME or NAMESPACE/NAME", arg)
		}
		names = append(names, types.NamespacedName{Namespace: ns, Name: name})
	}
	return names, nil
}

// output is the flag -o. The zero value of format prints for people.
type output struct {
	name    string
	formats []report.Format
}

// add adds -o; the first format is the default and is printed for people where
// it is report.Text.
func (o *output) add(cmd *cobra.Command, formats ...report.Format) {
	o.formats = formats
	var names []string
	for _, f := range formats {
		if f != report.Text {
			names = append(names, string(f))
		}
	}
	usage := "output `format`: " + strings.Join(names, ", ")
	if formats[0] == report.Text {
		usage += "; empty for text"
	}
	cmd.Flags().StringVarP(&o.name, "output", "o", string(formats[0]), usage)
	// The only error is a flag that does not exist.
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
}

func (o output) format() report.Format { return report.Format(o.name) }

func (o output) validate() error {
	if o.name == "" && o.formats[0] != report.Text {
		return fmt.Errorf("-o (--output) needs a format")
	}
	_, err := report.ParseFormat(o.name, o.formats...)
	return err
}

// encoded: stdout is one document, so nothing else may be written to it.
func (o output) encoded() bool {
	f := o.format()
	return f == report.JSON || f == report.YAML || f == report.JUnit
}

func noArgs(args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("unexpected argument %q", args[0])
	}
	return nil
}

func notNegative(flag string, d time.Duration) error {
	if d < 0 {
		return fmt.Errorf("--%s must not be negative", flag)
	}
	return nil
}

func positive(flag string, d time.Duration) error {
	if d <= 0 {
		return fmt.Errorf("--%s must be more than zero", flag)
	}
	return nil
}

// readable says early that a file or directory is not there; what is how the
// command line calls it.
func readable(what, path string) error {
	if path == "" {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		var pathErr *fs.PathError
		if errors.As(err, &pathErr) {
			err = pathErr.Err
		}
		return usagef("%s %s: %w", what, path, err)
	}
	return f.Close()
}

// firstError returns the first error there is.
func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
