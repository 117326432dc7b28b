package preflight

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/move-hook/move-hook/pkg/finding"
)

// checkProviders finds providers that the target has not, or has older, as clusterctl
// does before it moves (mover.go, checkTargetProviders): it refuses for each that the
// source's inventory has, whether objects of it move or not. Where the source has no
// inventory there is nothing to compare, and the kinds say the rest.
func checkProviders(in Input) []finding.Finding {
	t := in.Target
	if !t.Providers.Read {
		return nil
	}
	var found []finding.Finding
	done := map[string]bool{}
	for _, p := range t.Providers.Source {
		name := p.Type + " " + p.Name
		newest := newestOf(t.Providers.Source, p)
		if done[name] {
			continue
		}
		done[name] = true
		f := finding.Finding{ID: "ProviderOlder", Severity: finding.Stops, Object: name, Field: "version", Want: newest}
		have := newestOf(t.Providers.Target, p)
		wanted, err := version.ParseSemantic(newest)
		there, errThere := version.ParseSemantic(have)
		switch {
		case have == "":
			f.ID, f.Field, f.Want = "ProviderMissing", "", ""
			f.Message = fmt.Sprintf("is not in clusterctl's inventory of %s, and clusterctl refuses to move without it", t.Name)
			f.Remedy = "clusterctl init " + flagOf(p.Type) + p.Name + ":" + newest + " with the target's kubeconfig"
		case err != nil, errThere != nil:
			f.Have = have
			f.Message = "has a version that clusterctl cannot read, and it then refuses to move"
			f.Remedy = "correct the version in its Provider object"
		case there.LessThan(wanted):
			f.Have = have
			f.Message = fmt.Sprintf("is older on %s than on the source, and clusterctl refuses to move to an older one", t.Name)
			f.Remedy = "clusterctl upgrade apply " + flagOf(p.Type) + p.Name + ":" + newest + " with the target's kubeconfig"
		default:
			continue
		}
		found = append(found, f)
	}
	return found
}

// newestOf is the newest version that an inventory has of a provider: there may be
// several instances. A version that cannot be read comes before none.
func newestOf(inventory []Provider, of Provider) string {
	newest := ""
	for _, p := range inventory {
		if p.Type != of.Type || p.Name != of.Name {
			continue
		}
		have, err := version.ParseSemantic(newest)
		this, errThis := version.ParseSemantic(p.Version)
		if newest == "" || err == nil && (errThis != nil || have.LessThan(this)) {
			newest = p.Version
		}
	}
	return newest
}

// flagOf is clusterctl's flag for a type of provider, with a blank behind it.
func flagOf(providerType string) string {
	flags := map[string]string{
		"CoreProvider": "--core", "BootstrapProvider": "--bootstrap", "ControlPlaneProvider": "--control-plane",
		"InfrastructureProvider": "--infrastructure", "IPAMProvider": "--ipam",
		"RuntimeExtensionProvider": "--runtime-extension", "AddonProvider": "--addon",
	}
	if flag, ok := flags[providerType]; ok {
		return flag + " "
	}
	return ""
}
