package embedded

import (
	"context"
	"errors"
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

	"tutti/internal/core"
	"tutti/internal/disk"
	"tutti/internal/index"
)

// Config configures an Index. All fields but Dir have a default.
type Config struct {
	// Dir is the folder of the index; it is created if necessary.
	Dir string
	// TombstoneAge is how long the version of a deleted document is kept. Default 24 h.
	TombstoneAge time.Duration
	// PruneEvery is the interval at which older tombstones are removed. Default 10 min.
	PruneEvery time.Duration
	// LoadWait is how long a search waits for columns that are still being loaded after a start; then it returns CodeUnavailable.
	// Default 20 s.
	LoadWait time.Duration
	// Grown is called with the alias whose mapping a document has extended. It must not block. Default: none.
	Grown func(alias string)
	// Logger receives the messages of background work. Default: none.
	Logger *slog.Logger
	// Now is the clock that tombstones age by. Default time.Now.
	Now func() time.Time
}

func (c Config) withDefaults() Config {
	if c.TombstoneAge == 0 {
		c.TombstoneAge = 24 * time.Hour
	}
	if c.PruneEvery == 0 {
		c.PruneEvery = 10 * time.Minute
	}
	if c.LoadWait == 0 {
		c.LoadWait = 20 * time.Second
	}
	if c.Grown == nil {
		c.Grown = func(string) {}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

func (c Config) validate() error {
	if c.Dir == "" {
		return core.NewError(core.CodeInvalid, "the embedded index needs a folder")
	}
	if c.TombstoneAge < 0 || c.PruneEvery < 0 || c.LoadWait < 0 {
		return core.NewError(core.CodeInvalid, "the durations of the embedded index must not be negative")
	}
	return nil
}

const (
	// fileName is the name of the index file in its folder.
	fileName = "index.db"
	// lockWait is how long Open waits for another process to release the file.
	lockWait = 200 * time.Millisecond
	// loadRetry is the Retry-After of a search that is rejected while columns are loaded.
	loadRetry = 5 * time.Second
	// minProbeBytes and maxProbeBytes bound the free space that is required in the folder after a failed transaction. Each probe
	// writes that many bytes, on a disk that the index may share with the queue.
	minProbeBytes, maxProbeBytes = 1 << 20, 4 << 20
	// queueLength is the number of Writes that may wait for the transaction in progress before further ones block.
	queueLength = 64
)

var _ index.Index = (*Index)(nil)

// Index is the embedded index. It is safe for concurrent use.
type Index struct {
	cfg    Config
	db     *bbolt.DB
	folder *folder
	queue  chan *request
	swaps  chan *segmentSwap
	// searchSlots has an element for each search in progress.
	searchSlots chan struct{}
	work        sync.WaitGroup
	scratchPool sync.Pool

	// closeStarted is closed when Close starts, to cancel long operations. stop is closed when no call is in progress.
	closeStarted chan struct{}
	stop         chan struct{}

	// merges are the merges in progress; no segment file is written until filesPausedUntil. Both belong to commitLoop.
	merges           [mergeLanes]*merge
	filesPausedUntil time.Time

	// ensureMu serializes Ensure.
	ensureMu sync.Mutex

	// calls counts the calls in progress; lifeMu guards it and closed. Close does not hold lifeMu while it waits, so that a
	// callback may make further calls.
	lifeMu   sync.Mutex
	calls    sync.WaitGroup
	closed   bool
	closing  sync.Once
	closeErr error

	mu      sync.RWMutex
	aliases map[string]*alias
	// requiredRoom is the free space in bytes that the folder must have, after a failed transaction, before Check reports that the
	// index accepts writes. It is 0 once documents were stored or the space was found.
	requiredRoom int64
	// probing serializes write probes.
	probing sync.Mutex
}

// Open opens the index in cfg.Dir, creating an empty one if necessary. It returns CodeConflict when the index is already open in
// this or another process, and CodeUnsupported when the file was written by a newer tutti.
func Open(cfg Config) (*Index, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
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
	x := &Index{
		cfg: cfg, db: db, folder: &folder{dir: filepath.Join(cfg.Dir, folderName)}, aliases: map[string]*alias{},
		queue: make(chan *request, queueLength), swaps: make(chan *segmentSwap), closeStarted: make(chan struct{}), stop: make(chan struct{}),
		searchSlots: make(chan struct{}, runtime.GOMAXPROCS(0)),
	}
	loads, err := x.openAliases()
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if err := x.folder.clean(manifestFiles(loads)); err != nil {
		x.cfg.Logger.Warn("embedded index could not remove unlisted segment files", "err", err)
	}
	x.work.Go(x.commitLoop)
	x.work.Go(x.pruneLoop)
	x.work.Go(func() { x.loadSegments(loads) })
	return x, nil
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

// Close waits for the calls in progress, then closes the file. It may be called more than once; other calls return CodeUnavailable
// afterwards.
func (x *Index) Close() error {
	x.closing.Do(func() {
		x.lifeMu.Lock()
		x.closed = true
		x.lifeMu.Unlock()
		close(x.closeStarted)
		x.calls.Wait()
		close(x.stop)
		x.work.Wait()
		if err := x.db.Close(); err != nil {
			x.closeErr = core.WrapError(core.CodeUnavailable, "closing the embedded index", err)
		}
	})
	return x.closeErr
}

// beginCall registers a call, which must end with x.calls.Done. It returns an error when the index is closed.
func (x *Index) beginCall() error {
	x.lifeMu.Lock()
	defer x.lifeMu.Unlock()
	if x.closed {
		return errClosed()
	}
	x.calls.Add(1)
	return nil
}

func errClosed() error {
	return core.WrapError(core.CodeUnavailable, "the index is closed", core.ErrIndexUnreachable)
}

// Ping commits a small durable transaction. It returns CodeUnavailable when the index does not accept writes.
func (x *Index) Ping(context.Context) error {
	if err := x.beginCall(); err != nil {
		return err
	}
	defer x.calls.Done()
	return x.probeWrite()
}

// probeWrite commits a small transaction. After a failed transaction it first checks for the space that one required, because a
// small transaction may find free pages in a file that cannot grow.
func (x *Index) probeWrite() error {
	x.probing.Lock()
	defer x.probing.Unlock()
	x.mu.RLock()
	lacking := x.requiredRoom
	x.mu.RUnlock()
	if lacking > 0 {
		if err := disk.ProbeSpace(x.cfg.Dir, lacking); err != nil {
			return errNotWritten(err)
		}
	}
	err := x.update(0, func(tx *bbolt.Tx) error { return tx.Bucket(bucketMeta()).Put([]byte("probe"), []byte{1}) })
	x.mu.Lock()
	defer x.mu.Unlock()
	if err == nil && x.requiredRoom == lacking {
		x.requiredRoom = 0
	}
	return err
}

// Check returns nil when alias accepts writes. After a failed transaction it tries a small one.
func (x *Index) Check(_ context.Context, name string) error {
	if err := x.beginCall(); err != nil {
		return err
	}
	defer x.calls.Done()
	if _, err := x.alias(name); err != nil {
		return err
	}
	x.mu.RLock()
	lacking := x.requiredRoom
	x.mu.RUnlock()
	if lacking == 0 {
		return nil
	}
	return x.probeWrite()
}

// Identity returns the random identity with which the alias was created.
func (x *Index) Identity(_ context.Context, name string) (string, error) {
	if err := x.beginCall(); err != nil {
		return "", err
	}
	defer x.calls.Done()
	a, err := x.alias(name)
	if err != nil {
		return "", err
	}
	return a.identity, nil
}

// Refresh blocks until committed writes are visible to searches. Writes that returned are visible without it.
func (x *Index) Refresh(ctx context.Context, name string) error {
	if err := x.beginCall(); err != nil {
		return err
	}
	defer x.calls.Done()
	a, err := x.alias(name)
	if err != nil {
		return err
	}
	var row uint64
	err = x.db.View(func(tx *bbolt.Tx) error {
		row = aliasBucket(tx, a.name).Bucket(bucketRows()).Sequence()
		return nil
	})
	if err != nil {
		return core.WrapError(core.CodeUnavailable, "reading the embedded index", err)
	}
	for a.segments.commitPending(row) {
		if err := ctx.Err(); err != nil {
			return core.WrapError(core.CodeUnavailable, "waiting for the index was cancelled", err)
		}
		time.Sleep(snapshotPoll)
	}
	return nil
}

// update runs one durable transaction that stores about size bytes of documents, 0 for none, and records whether it succeeded.
// touched are the aliases whose saved tree or terms apply may change.
func (x *Index) update(size int, apply func(tx *bbolt.Tx) error, touched ...*alias) error {
	err := x.db.Update(apply)
	x.mu.Lock()
	switch {
	case err != nil:
		x.requiredRoom = min(max(minProbeBytes, 2*int64(size), x.requiredRoom), maxProbeBytes)
	case size > 0:
		x.requiredRoom = 0
	}
	x.mu.Unlock()
	if err == nil {
		return nil
	}
	return errNotWritten(errors.Join(err, x.reload(touched)))
}

func errNotWritten(err error) error {
	return core.WrapError(core.CodeUnavailable, "writing to the index failed", err)
}

// reload reloads what aliases cache of the file after a failed transaction.
func (x *Index) reload(touched []*alias) error {
	tx, err := x.db.Begin(true)
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
