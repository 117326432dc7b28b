// Package scenario holds what move-hook promises as code over two management
// clusters, whatever they run on: the embedded stack (its tests are here) or
// kind. A scenario returns what it saw; tests compare, the demo prints.
package scenario
