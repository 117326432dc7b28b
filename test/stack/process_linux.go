package stack

import "syscall"

// dieWithParent has the kernel kill the child when this process is gone, also
// after SIGKILL. The process group of its own keeps a Ctrl-C on the terminal
// from reaching the child before its parent has had a word with it.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
