//go:build unix && !linux

package stack

import "syscall"

// dieWithParent cannot be had outside Linux: there the children end with
// Stop, or with the terminal's process group, but not when this process is killed.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }
