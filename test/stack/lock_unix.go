//go:build unix

package stack

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// fileLock is an advisory lock on a file. The kernel drops it when the process
// ends, however it ends, so a killed test never leaves a lock behind.
type fileLock struct{ file *os.File }

// tryLock takes the lock on path, or returns nil if somebody else holds it.
func tryLock(path string) (*fileLock, error) { return lock(path, syscall.LOCK_EX|syscall.LOCK_NB) }

// waitLock takes the lock on path, however long that takes.
func waitLock(path string) (*fileLock, error) { return lock(path, syscall.LOCK_EX) }

func lock(path string, how int) (*fileLock, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(file.Fd()), how)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err == nil {
		return &fileLock{file: file}, nil
	}
	_ = file.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, nil
	}
	return nil, fmt.Errorf("locking %s: %w", path, err)
}

func (l *fileLock) release() { _ = l.file.Close() }
