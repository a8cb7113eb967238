package embedded

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"tutti/internal/core"
)

// damageFile is the file in the folder of the streams that holds the Damage until it is handled.
const damageFile = "damage.json"

// Damage is the number of stored messages of each stream that could not be read, because their bytes have changed on the disk. Where the
// lengths of messages have changed, it is the number of those that may have been there.
type Damage map[string]int

// repairStreams checks every message in the files of the streams, before a server opens them: it reads most blocks only when their
// messages are delivered and, if it reads them at the start, deletes all messages of a block after the first that it cannot read. A
// message that cannot be read is replaced by the server's own record of an erased message, so that the others remain. The file with what
// is known of the damage is written first.
func repairStreams(dir string) (Damage, error) {
	found, err := readDamage(dir)
	if err != nil {
		return nil, err
	}
	folders, err := filepath.Glob(filepath.Join(dir, "jetstream", "*", "streams", "*", "msgs"))
	if err != nil {
		return nil, core.WrapError(core.CodeInternal, "listing the streams of the embedded queue", err)
	}
	var repairs []func() error
	for _, folder := range folders {
		stream := filepath.Base(filepath.Dir(folder))
		blocks, err := scanBlocks(stream, folder)
		if err != nil {
			return nil, core.WrapError(core.CodeInternal, "checking the messages of the stream "+stream, err)
		}
		n := countDamage(blocks)
		if n == 0 && !slices.ContainsFunc(blocks, func(b *block) bool { return len(b.gaps) > 0 }) {
			continue
		}
		if found == nil {
			found = Damage{}
		}
		found[stream] += n
		repairs = append(repairs, func() error { return repairBlocks(folder, blocks) })
	}
	if len(repairs) == 0 {
		return found, nil
	}
	if err := writeDamage(dir, found); err != nil {
		return nil, err
	}
	for _, repair := range repairs {
		if err := repair(); err != nil {
			return nil, core.WrapError(core.CodeInternal, "repairing the messages of the embedded queue", err)
		}
	}
	return found, nil
}

func readDamage(dir string) (found Damage, err error) {
	raw, err := os.ReadFile(filepath.Join(dir, damageFile)) // #nosec G304 -- the folder of the queue
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, core.WrapError(core.CodeInternal, "reading the damage of the embedded queue", err)
	case json.Unmarshal(raw, &found) != nil: // it was being written when the process ended, before a repair: the damage is found again
		return nil, nil
	}
	return found, nil
}

func writeDamage(dir string, found Damage) error {
	raw, err := json.Marshal(found)
	if err == nil {
		err = writeSynced(filepath.Join(dir, damageFile), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, func(f *os.File) error {
			_, err := f.Write(raw)
			return err
		})
	}
	if err != nil {
		return core.WrapError(core.CodeInternal, "writing the damage of the embedded queue", err)
	}
	return nil
}

// writeSynced opens a file, calls write and syncs the file.
func writeSynced(name string, flags int, write func(*os.File) error) error {
	f, err := os.OpenFile(name, flags, 0o600) // #nosec G304 -- a file in the folder of the queue
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Sync(), f.Close())
}

// scanBlocks reads the blocks in a stream's folder of messages, in order.
func scanBlocks(stream, folder string) ([]*block, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var blocks []*block
	for _, e := range entries {
		number, is := strings.CutSuffix(e.Name(), ".blk")
		if n, err := strconv.ParseUint(number, 10, 32); is && err == nil {
			blocks = append(blocks, &block{path: filepath.Join(folder, e.Name()), number: n, stream: stream})
		}
	}
	slices.SortFunc(blocks, func(a, b *block) int { return int(a.number) - int(b.number) })
	var workers sync.WaitGroup
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for _, b := range blocks {
		slots <- struct{}{}
		workers.Go(func() {
			defer func() { <-slots }()
			b.err = b.scan()
		})
	}
	workers.Wait()
	var errs []error
	last, next := uint64(0), uint64(0)
	for _, b := range blocks {
		errs = append(errs, b.err)
		b.after, last = last, max(last, b.last)
	}
	for _, b := range slices.Backward(blocks) {
		if b.before = next; b.first > 0 {
			next = b.first
		}
	}
	return blocks, errors.Join(errs...)
}

// countDamage returns the number of messages in the gaps of a stream's blocks, without those that were deleted.
func countDamage(blocks []*block) (n int) {
	if !slices.ContainsFunc(blocks, func(b *block) bool { return len(b.gaps) > 0 }) {
		return 0
	}
	deleted := map[uint64]bool{}
	for _, b := range blocks {
		for _, seq := range b.tombstones {
			deleted[seq] = true
		}
	}
	for _, b := range blocks {
		for _, g := range b.gaps {
			n += g.messages(b, deleted)
		}
	}
	return n
}

// repairBlocks fills the gaps of a stream's blocks. The server's own summary of the stream is removed: it is made of the blocks again.
func repairBlocks(folder string, blocks []*block) error {
	if err := os.Remove(filepath.Join(folder, "index.db")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, b := range blocks {
		if len(b.gaps) == 0 {
			continue
		}
		if err := writeSynced(b.path, os.O_WRONLY, b.fill); err != nil {
			return err
		}
	}
	return nil
}

// Damage returns what could not be read when the server was started, by this process or by an earlier one that did not handle it. It is
// empty for a sound store.
func (s *Server) Damage() Damage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.damage
}

// DamageHandled forgets the damage that was found so far, for the next start.
func (s *Server) DamageHandled() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := os.Remove(filepath.Join(s.cfg.Dir, damageFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return core.WrapError(core.CodeInternal, "removing the damage of the embedded queue", err)
	}
	return nil
}
