package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/whippet-mq/whippet/libs/service"
	"github.com/whippet-mq/whippet/libs/vfs"
)

// maxSlots bounds the processes that share a volume.
const maxSlots = 256

// takeSlot gives a partition replica a directory of its own below the configured one: the first that no
// other process holds. So one volume serves any number of replicas, and fewer or more of them find the
// same nodes again (design-arguments 29). The data directory is the slot from then on; closing the
// returned lock gives it back.
func takeSlot(config *service.Config) (vfs.File, error) {
	root := config.System.Path
	slots := filepath.Join(root, "slots")
	if err := os.MkdirAll(slots, 0o750); err != nil {
		return nil, service.WithExit(service.ExitConfig, fmt.Errorf("data directory: %w", err))
	}
	for k := range maxSlots {
		lock, err := vfs.NewOS(slots).Lock(strconv.Itoa(k) + ".lock")
		if errors.Is(err, vfs.ErrLocked) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("data directory: %w", err)
		}
		config.System.Path = filepath.Join(slots, strconv.Itoa(k))
		return lock, nil
	}
	return nil, fmt.Errorf("data directory %s: all %d slots are taken", root, maxSlots)
}
