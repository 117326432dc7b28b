package stack

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
)

// Ports are handed out in blocks below the range from which the kernel takes
// the ports of outgoing connections, and each block is locked by a file for
// the life of this process. Asking the kernel for a free port and closing it
// again would race with every other test process on the machine.
const (
	firstPort  = 20000
	blockSize  = 100
	blockCount = 100
)

type portBlock struct {
	lock  *fileLock
	first int

	mu    sync.Mutex
	taken map[int]bool
}

func reservePorts() (*portBlock, error) {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("move-hook-ports-%d", os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	// Start anywhere, so that two runs in a row do not meet the other's
	// half-closed connections.
	offset := rand.IntN(blockCount)
	for i := range blockCount {
		first := firstPort + (offset+i)%blockCount*blockSize
		lock, err := tryLock(filepath.Join(dir, strconv.Itoa(first)))
		if err != nil {
			return nil, err
		}
		if lock != nil {
			return &portBlock{lock: lock, first: first, taken: map[int]bool{}}, nil
		}
	}
	return nil, fmt.Errorf("all %d blocks of ports from %d on are taken by running stacks", blockCount, firstPort)
}

// port takes a port of the block on which nobody listens.
func (b *portBlock) port() (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for port := b.first; port < b.first+blockSize; port++ {
		if b.taken[port] {
			continue
		}
		b.taken[port] = true // also if somebody outside listens there
		if portIsFree(port) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free port left from %d to %d", b.first, b.first+blockSize-1)
}

func portIsFree(port int) bool {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	_ = listener.Close()
	return true
}

func (b *portBlock) release() { b.lock.release() }
