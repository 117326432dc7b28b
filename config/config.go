// Package config holds the manifests with which post runs as a Job, as an operator
// applies them, for `move --post-as-job`.
package config

import "embed"

// Files are the folders whose kustomizations list nothing but files of their own.
//
//go:embed rbac job scaled-down
var Files embed.FS
