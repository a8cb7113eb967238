package embedded

import (
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"tutti/internal/base/disk"
	"tutti/internal/core"
	"tutti/internal/index/mapping"
)

const (
	// fileName is the name of the index file in its folder.
	fileName = "index.db"
	// lockWait is how long openStore waits for another process to release the file.
	lockWait = 200 * time.Millisecond
	// minProbeBytes and maxProbeBytes bound the free space that is required in the folder after a failed transaction. Each probe
	// writes that many bytes, on a disk that the index may share with the queue.
	minProbeBytes, maxProbeBytes = 1 << 20, 4 << 20
)

// store is the index file and its aliases, with the calls in progress on them. The parts of an Index share it.
type store struct {
	cfg Config
	db  *bbolt.DB
	// large are buffers of large documents, batches those of batches of a Stream.
	large, batches bufferPool
	types          mapping.Declarations

	// calls counts the calls in progress; lifeMu guards it and closed. endCalls does not hold lifeMu while it waits, so that a
	// callback may make further calls.
	lifeMu sync.Mutex
	calls  sync.WaitGroup
	closed bool
	// closeStarted is closed when Close starts, to cancel long operations. stop is closed when no call is in progress.
	closeStarted, stop chan struct{}
	// work are the background goroutines.
	work sync.WaitGroup

	mu      sync.RWMutex
	aliases map[string]*alias
	// requiredSpace is the free space in bytes that the folder must have, after a failed transaction, before Check reports that the
	// index accepts writes. It is 0 once documents were stored or the space was found.
	requiredSpace int64
	// probing serializes write probes.
	probing sync.Mutex
}

// openStore opens or creates the file. loads is what it contains about the segments of its aliases.
func openStore(cfg Config) (s *store, loads []*aliasLoad, err error) {
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, nil, core.WrapError(core.CodeUnavailable, "creating the folder of the embedded index", err)
	}
	db, err := openFile(filepath.Join(cfg.Dir, fileName))
	if errors.Is(err, berrors.ErrTimeout) {
		return nil, nil, &core.Error{
			Code: core.CodeConflict, Message: "the embedded index is in use by another process",
			Hint: "stop the other process, or configure another dataDir", Err: err,
		}
	}
	if err != nil {
		return nil, nil, core.WrapError(core.CodeUnavailable, "opening the embedded index", err)
	}
	s = &store{cfg: cfg, db: db, aliases: map[string]*alias{}, closeStarted: make(chan struct{}), stop: make(chan struct{})}
	if loads, err = s.openAliases(); err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	return s, loads, nil
}

// openFile opens the index file. A large initial mmap avoids remapping, during which writers and long readers such as Stream would
// block each other. When there is not enough address space, it falls back to less.
func openFile(path string) (*bbolt.DB, error) {
	opts := &bbolt.Options{Timeout: lockWait, FreelistType: bbolt.FreelistMapType, NoStatistics: true}
	for _, size := range mapBytes() {
		opts.InitialMmapSize = size
		db, err := bbolt.Open(path, 0o600, opts)
		if !errors.Is(err, syscall.ENOMEM) {
			return db, err
		}
	}
	opts.InitialMmapSize = 0
	return bbolt.Open(path, 0o600, opts)
}

// mapBytes returns the mmap sizes to try, in bytes. On Windows a file is as large as its mmap.
func mapBytes() []int {
	const little = 1 << 30
	if most := uint64(64 << 30); most < math.MaxInt && runtime.GOOS != "windows" {
		return []int{int(most), little}
	}
	return []int{little}
}

// beginCall registers a call, which must end with s.calls.Done. It returns an error when the index is closed.
func (s *store) beginCall() error {
	s.lifeMu.Lock()
	defer s.lifeMu.Unlock()
	if s.closed {
		return errClosed()
	}
	s.calls.Add(1)
	return nil
}

// use registers a call on an alias, which must end with done. CodeIndexBlocked when the alias does not exist.
func (s *store) use(name string) (a *alias, done func(), err error) {
	if err := s.beginCall(); err != nil {
		return nil, nil, err
	}
	if a, err = s.alias(name); err != nil {
		s.calls.Done()
		return nil, nil, err
	}
	return a, s.calls.Done, nil
}

// endCalls rejects further calls and waits for those in progress.
func (s *store) endCalls() {
	s.lifeMu.Lock()
	s.closed = true
	s.lifeMu.Unlock()
	close(s.closeStarted)
	s.calls.Wait()
	close(s.stop)
}

func errClosed() error {
	return core.WrapError(core.CodeUnavailable, "the index is closed", core.ErrIndexUnreachable)
}

// alias returns the alias of that name, CodeIndexBlocked when it does not exist.
func (s *store) alias(name string) (*alias, error) {
	s.mu.RLock()
	a := s.aliases[name]
	s.mu.RUnlock()
	if a == nil {
		return nil, errMissing(name)
	}
	return a, nil
}

func errMissing(name string) error {
	return core.WrapError(core.CodeIndexBlocked, fmt.Sprintf("the index %q does not exist", name), core.ErrIndexMissing)
}

func (s *store) allAliases() []*alias {
	s.mu.RLock()
	defer s.mu.RUnlock()
	all := make([]*alias, 0, len(s.aliases))
	for _, a := range s.aliases {
		all = append(all, a)
	}
	return all
}

// openAliases creates the buckets of a new file and reads the aliases of an existing one. Their segments are loaded later.
func (s *store) openAliases() ([]*aliasLoad, error) {
	var loads []*aliasLoad
	err := s.db.Update(func(tx *bbolt.Tx) error {
		meta, err := tx.CreateBucketIfNotExists(bucketMeta())
		if err != nil {
			return err
		}
		if err := checkFormat(meta.Get(keyFormat())); err != nil {
			return err
		}
		if raw := meta.Get(keyFormat()); raw == nil || raw[0] < format {
			if err := meta.Put(keyFormat(), []byte{format}); err != nil {
				return err
			}
		}
		all, err := tx.CreateBucketIfNotExists(bucketAliases())
		if err != nil {
			return err
		}
		indices, err := indicesByAlias(tx, all)
		if err != nil {
			return err
		}
		for alias, name := range indices {
			b := all.Bucket([]byte(name))
			if b.Get(keyIdentity()) == nil {
				if err := b.Put(keyIdentity(), []byte(rand.Text())); err != nil {
					return err
				}
			}
			a, err := loadAlias(name, b)
			if err != nil {
				return err
			}
			l, err := newAliasLoad(a, b)
			if err != nil {
				return err
			}
			s.aliases[alias], loads = a, append(loads, l)
		}
		return nil
	})
	if err != nil && core.CodeOf(err) == core.CodeInternal {
		err = core.WrapError(core.CodeUnavailable, "reading the embedded index", err)
	}
	return loads, err
}

// indicesByAlias returns the names of the buckets of indices by alias.
func indicesByAlias(tx *bbolt.Tx, all *bbolt.Bucket) (map[string]string, error) {
	indices := map[string]string{}
	if names := tx.Bucket(bucketNames()); names != nil {
		return indices, names.ForEach(func(alias, name []byte) error {
			indices[string(alias)] = string(name)
			return nil
		})
	}
	return indices, all.ForEachBucket(func(name []byte) error {
		indices[string(name)] = string(name)
		return nil
	})
}

// view runs one read transaction over an alias. read must be short, and must not keep memory of the bucket.
func (s *store) view(name string, read func(a *alias, b *bbolt.Bucket) error) error {
	a, done, err := s.use(name)
	if err != nil {
		return err
	}
	defer done()
	return s.viewIndex(a, read)
}

// viewIndex is view for an index that the caller uses.
func (s *store) viewIndex(a *alias, read func(a *alias, b *bbolt.Bucket) error) error {
	err := s.db.View(func(tx *bbolt.Tx) error {
		b := aliasBucket(tx, a.name)
		if b == nil {
			return errMissing(a.name)
		}
		return read(a, b)
	})
	if err != nil && core.CodeOf(err) == core.CodeInternal {
		return core.WrapError(core.CodeUnavailable, "reading the index failed", err)
	}
	return err
}

// update runs one durable transaction that stores about size bytes of documents, 0 for none, and records whether it succeeded.
// touched are the aliases whose saved tree or terms apply may change.
func (s *store) update(size int, apply func(tx *bbolt.Tx) error, touched ...*alias) error {
	err := s.db.Update(apply)
	s.mu.Lock()
	switch {
	case err != nil:
		s.requiredSpace = min(max(minProbeBytes, 2*int64(size), s.requiredSpace), maxProbeBytes)
	case size > 0:
		s.requiredSpace = 0
	}
	s.mu.Unlock()
	if err == nil {
		return nil
	}
	return errNotWritten(errors.Join(err, s.reload(touched)))
}

func errNotWritten(err error) error {
	return core.WrapError(core.CodeUnavailable, "writing to the index failed", err)
}

// reload reloads what aliases cache of the file after a failed transaction.
func (s *store) reload(touched []*alias) error {
	tx, err := s.db.Begin(true)
	if err != nil {
		return err
	}
	for _, a := range touched {
		a.saved = nil
		if b := aliasBucket(tx, a.name); b != nil {
			err = errors.Join(err, a.loadTerms(b))
		}
	}
	return errors.Join(err, tx.Rollback())
}

// probeWrite commits a small transaction. After a failed transaction it first checks for the space that one required, because a
// small transaction may find free pages in a file that cannot grow.
func (s *store) probeWrite() error {
	s.probing.Lock()
	defer s.probing.Unlock()
	s.mu.RLock()
	lacking := s.requiredSpace
	s.mu.RUnlock()
	if lacking > 0 {
		if err := disk.ProbeSpace(s.cfg.Dir, lacking); err != nil {
			return errNotWritten(err)
		}
	}
	err := s.update(0, func(tx *bbolt.Tx) error { return tx.Bucket(bucketMeta()).Put([]byte("probe"), []byte{1}) })
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && s.requiredSpace == lacking {
		s.requiredSpace = 0
	}
	return err
}
