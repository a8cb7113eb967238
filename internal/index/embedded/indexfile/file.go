package indexfile

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
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
	"tutti/internal/index/embedded/segmentset"
)

const (
	// fileName is the name of the index file in its folder.
	fileName = "index.db"
	// lockWait is how long Open waits for another process to release the file.
	lockWait = 200 * time.Millisecond
	// minProbeBytes and maxProbeBytes bound the free space that is required in the folder after a failed transaction. Each probe
	// writes that many bytes, on a disk that the index may share with the queue.
	minProbeBytes, maxProbeBytes = 1 << 20, 4 << 20
)

// Config configures a File. All fields are required.
type Config struct {
	// Dir is the folder of the file; it is created if necessary.
	Dir string
	// TombstoneAge is how long the version of a deleted document is kept, and PruneEvery the interval at which older ones are removed.
	TombstoneAge, PruneEvery time.Duration
	// Logger receives the messages of background work.
	Logger *slog.Logger
	// Now is the clock that tombstones age by.
	Now func() time.Time
}

// File is the index file and its aliases, with the calls in progress on them. It is safe for concurrent use.
type File struct {
	cfg       Config
	db        *bbolt.DB
	folder    *segmentset.Folder
	committer *committer
	calls     calls
	// work are the background goroutines.
	work     sync.WaitGroup
	closing  sync.Once
	closeErr error

	mu      sync.RWMutex
	aliases map[string]*Alias
	// requiredSpace is the free space in bytes that the folder must have, after a failed transaction, before Writable reports that the
	// index accepts writes. It is 0 once documents were stored or the space was found.
	requiredSpace int64
	// probing serializes write probes.
	probing sync.Mutex
}

// Open opens the file in cfg.Dir, creating an empty one if necessary, and loads the segments of its aliases in the background. CodeConflict
// when it is already open in this or another process, CodeUnsupported when it was written by a newer tutti.
func Open(cfg Config) (*File, error) {
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, core.WrapError(core.CodeUnavailable, "creating the folder of the embedded index", err)
	}
	db, err := openFile(filepath.Join(cfg.Dir, fileName))
	if errors.Is(err, berrors.ErrTimeout) {
		return nil, &core.Error{
			Code: core.CodeConflict, Message: "the embedded index is in use by another process",
			Hint: "stop the other process, or configure another dataDir", Err: err,
		}
	}
	if err != nil {
		return nil, core.WrapError(core.CodeUnavailable, "opening the embedded index", err)
	}
	f := &File{
		cfg: cfg, db: db, folder: segmentset.NewFolder(cfg.Dir, cfg.Logger), aliases: map[string]*Alias{},
		calls: calls{closing: make(chan struct{}), stop: make(chan struct{})},
	}
	loads, err := f.openAliases()
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if err := f.folder.Clean(manifestFiles(loads)); err != nil {
		cfg.Logger.Warn("embedded index could not remove unlisted segment files", "err", err)
	}
	f.committer = newCommitter(f)
	f.work.Go(f.committer.run)
	f.work.Go((&pruner{f}).run)
	f.work.Go(func() { (&loader{f}).run(loads) })
	return f, nil
}

// Close waits for the calls in progress, then closes the file. It may be called more than once; other calls return CodeUnavailable
// afterwards.
func (f *File) Close() error {
	f.closing.Do(func() {
		f.calls.end()
		f.work.Wait()
		if err := f.db.Close(); err != nil {
			f.closeErr = core.WrapError(core.CodeUnavailable, "closing the embedded index", err)
		}
	})
	return f.closeErr
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

// Begin registers a call, which must end with done. CodeUnavailable when the file is closed.
func (f *File) Begin() (done func(), err error) {
	if err := f.calls.begin(); err != nil {
		return nil, err
	}
	return f.calls.running.Done, nil
}

// Use registers a call on an alias, which must end with done. CodeIndexBlocked when the alias does not exist.
func (f *File) Use(name string) (a *Alias, done func(), err error) {
	if done, err = f.Begin(); err != nil {
		return nil, nil, err
	}
	if a, err = f.Alias(name); err != nil {
		done()
		return nil, nil, err
	}
	return a, done, nil
}

// Alias returns the alias of that name, CodeIndexBlocked when it does not exist.
func (f *File) Alias(name string) (*Alias, error) {
	f.mu.RLock()
	a := f.aliases[name]
	f.mu.RUnlock()
	if a == nil {
		return nil, ErrMissing(name)
	}
	return a, nil
}

// ErrMissing returns CodeIndexBlocked for an alias that does not exist.
func ErrMissing(name string) error {
	return core.WrapError(core.CodeIndexBlocked, fmt.Sprintf("the index %q does not exist", name), core.ErrIndexMissing)
}

func (f *File) allAliases() []*Alias {
	f.mu.RLock()
	defer f.mu.RUnlock()
	all := make([]*Alias, 0, len(f.aliases))
	for _, a := range f.aliases {
		all = append(all, a)
	}
	return all
}

// openAliases creates the buckets of a new file and reads the aliases of an existing one. Their segments are loaded later.
func (f *File) openAliases() ([]*aliasLoad, error) {
	var loads []*aliasLoad
	err := f.db.Update(func(tx *bbolt.Tx) error {
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
			a, err := loadAlias(f, name, b)
			if err != nil {
				return err
			}
			l, err := newAliasLoad(a, b)
			if err != nil {
				return err
			}
			f.aliases[alias], loads = a, append(loads, l)
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

// update runs one durable transaction that stores about size bytes of documents, 0 for none, and records whether it succeeded.
// touched are the aliases whose saved tree or terms apply may change.
func (f *File) update(size int, apply func(tx *bbolt.Tx) error, touched ...*Alias) error {
	err := f.db.Update(apply)
	f.mu.Lock()
	switch {
	case err != nil:
		f.requiredSpace = min(max(minProbeBytes, 2*int64(size), f.requiredSpace), maxProbeBytes)
	case size > 0:
		f.requiredSpace = 0
	}
	f.mu.Unlock()
	if err == nil {
		return nil
	}
	return errNotWritten(errors.Join(err, f.reload(touched)))
}

func errNotWritten(err error) error {
	return core.WrapError(core.CodeUnavailable, "writing to the index failed", err)
}

// reload reloads what aliases cache of the file after a failed transaction.
func (f *File) reload(touched []*Alias) error {
	tx, err := f.db.Begin(true)
	if err != nil {
		return err
	}
	for _, a := range touched {
		a.saved = nil
		if b := a.bucket(tx); b != nil {
			err = errors.Join(err, a.loadTerms(b))
		}
	}
	return errors.Join(err, tx.Rollback())
}

// Probe commits a small durable transaction, CodeUnavailable when it cannot. After a failed transaction it first checks for the space that
// one required, because a small transaction may find free pages in a file that cannot grow.
func (f *File) Probe() error {
	f.probing.Lock()
	defer f.probing.Unlock()
	f.mu.RLock()
	lacking := f.requiredSpace
	f.mu.RUnlock()
	if lacking > 0 {
		if err := disk.ProbeSpace(f.cfg.Dir, lacking); err != nil {
			return errNotWritten(err)
		}
	}
	err := f.update(0, func(tx *bbolt.Tx) error { return tx.Bucket(bucketMeta()).Put([]byte("probe"), []byte{1}) })
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil && f.requiredSpace == lacking {
		f.requiredSpace = 0
	}
	return err
}

// Writable returns nil, or after a failed transaction what Probe returns.
func (f *File) Writable() error {
	f.mu.RLock()
	lacking := f.requiredSpace
	f.mu.RUnlock()
	if lacking == 0 {
		return nil
	}
	return f.Probe()
}
