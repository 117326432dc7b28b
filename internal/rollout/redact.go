package rollout

import (
	"crypto/sha256"
	"fmt"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
)

// redact replaces what may be confidential and would be printed in a difference:
// contents of files, passwords, tokens. What was equal stays equal, what differed
// differs, what was empty stays empty, so no verdict changes.
func redact(spec *bootstrapv1.KubeadmConfigSpec) {
	for i := range spec.Files {
		spec.Files[i].Content = digest(spec.Files[i].Content)
	}
	for i := range spec.Users {
		spec.Users[i].Passwd = digest(spec.Users[i].Passwd)
	}
	for i := range spec.InitConfiguration.BootstrapTokens {
		token := &spec.InitConfiguration.BootstrapTokens[i].Token
		token.Secret = digest(token.Secret)
	}
}

func digest(s string) string {
	if s == "" {
		return ""
	}
	return fmt.Sprintf("<%d bytes, sha256 %.6x>", len(s), sha256.Sum256([]byte(s)))
}
