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

// Config says where the index lives. All but Dir has a default.
type Config struct {
	// Dir is the folder of the index; it is made when it does not exist.
	Dir string
	// TombstoneAge is how long the version of a deleted document is remembered. Default 24 h.
	TombstoneAge time.Duration
	// PruneEvery is how often older tombstones are removed. Default 10 min.
	PruneEvery time.Duration
	// LoadWait is how long a search waits, after a start, for columns that are still being loaded; then it is CodeUnavailable.
	// Default 20 s.
	LoadWait time.Duration
	// Grown is told of each alias whose mapping has grown with a document; it must not wait. Default: nobody is told.
	Grown func(alias string)
	// Logger gets what the background work has to say. Default: nothing is logged.
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
		return core.NewError(core.CodeInvalid, "the embedded index' times must not be negative")
	}
	return nil
}

const (
	// fileName is the index' file in its folder.
	fileName = "index.db"
	// lockWait is how long Open waits for a process that is about to let go of the file.
	lockWait = 200 * time.Millisecond
	// loadRetry is when a search that came too early may be tried again.
	loadRetry = 5 * time.Second
	// roomLeast and roomMost bound how many bytes the folder must have room for after a transaction that failed. Each proof
	// writes as many, on a disk that the index may share with the queue.
	roomLeast, roomMost = 1 << 20, 4 << 20
	// queueLength is how many Writes may wait for the transaction in progress before further ones block.
	queueLength = 64
)

var _ index.Index = (*Index)(nil)

// Index is the embedded index. All methods may be called concurrently.
type Index struct {
	cfg    Config
	db     *bbolt.DB
	folder *folder
	queue  chan *request
	swaps  chan *swap
	// searches has an element for each search in progress.
	searches chan struct{}
	work     sync.WaitGroup
	lanes    sync.Pool

	// ending is closed when Close begins: what may take long ends then. stop is closed when no call is in progress any more.
	ending chan struct{}
	stop   chan struct{}

	// merges are those in progress, and rest is until when no file of a segment is tried; both belong to commitLoop.
	merges [mergeLanes]*merge
	rest   time.Time

	// ensuring lets one Ensure make an alias at a time.
	ensuring sync.Mutex

	// calls are those in progress, guarded by life as closed is. It is no lock that Close takes, so that a call may be made
	// within another one's callback.
	life     sync.Mutex
	calls    sync.WaitGroup
	closed   bool
	closing  sync.Once
	closeErr error

	mu      sync.RWMutex
	aliases map[string]*alias
	// lacking is how many bytes the folder must have room for before Check reports that the index takes writes, after a
	// transaction that failed; 0 after documents were stored, or such room was proved.
	lacking int64
	// proving lets one proof of a durable write run at a time.
	proving sync.Mutex
}

// Open opens the index in cfg.Dir, or makes an empty one. CodeConflict when another process, or another Index of this
// one, has it open; CodeUnsupported when the file was written by a newer tutti.
func Open(cfg Config) (*Index, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, core.WrapError(core.CodeUnavailable, "making the folder of the embedded index", err)
	}
	db, err := openFile(filepath.Join(cfg.Dir, fileName))
	if errors.Is(err, berrors.ErrTimeout) {
		return nil, &core.Error{
			Code: core.CodeConflict, Message: "the embedded index is in use by another process",
			Hint: "stop the other process, or give this one a dataDir of its own", Err: err,
		}
	}
	if err != nil {
		return nil, core.WrapError(core.CodeUnavailable, "opening the embedded index", err)
	}
	x := &Index{
		cfg: cfg, db: db, folder: &folder{dir: filepath.Join(cfg.Dir, folderName)}, aliases: map[string]*alias{},
		queue: make(chan *request, queueLength), swaps: make(chan *swap), ending: make(chan struct{}), stop: make(chan struct{}),
		searches: make(chan struct{}, runtime.GOMAXPROCS(0)),
	}
	loads, err := x.load()
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if err := x.folder.clean(files(loads)); err != nil {
		x.cfg.Logger.Warn("embedded index could not remove old files", "err", err)
	}
	x.work.Go(x.commitLoop)
	x.work.Go(x.pruneLoop)
	x.work.Go(func() { x.loadSegments(loads) })
	return x, nil
}

// openFile opens the index' file. Address space that is taken at once keeps a growing file from waiting for its readers, and
// readers that begin meanwhile from waiting for it: a Stream may be one for a long time. Where there is not as much, less has
// to do.
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

// mapBytes are the sizes of address space to try. Windows makes the file as big as its map.
func mapBytes() []int {
	const little = 1 << 30
	if most := uint64(64 << 30); most < math.MaxInt && runtime.GOOS != "windows" {
		return []int{int(most), little}
	}
	return []int{little}
}

// Close waits for the calls in progress, then lets go of the file. It may be called more than once; other calls after
// it give CodeUnavailable.
func (x *Index) Close() error {
	x.closing.Do(func() {
		x.life.Lock()
		x.closed = true
		x.life.Unlock()
		close(x.ending)
		x.calls.Wait()
		close(x.stop)
		x.work.Wait()
		if err := x.db.Close(); err != nil {
			x.closeErr = core.WrapError(core.CodeUnavailable, "closing the embedded index", err)
		}
	})
	return x.closeErr
}

// begin holds the index open for one call, which ends with x.calls.Done.
func (x *Index) begin() error {
	x.life.Lock()
	defer x.life.Unlock()
	if x.closed {
		return errClosed()
	}
	x.calls.Add(1)
	return nil
}

func errClosed() error {
	return core.WrapError(core.CodeUnavailable, "the index is closed", core.ErrIndexUnreachable)
}

// Ping proves by a small durable transaction that the index takes writes; CodeUnavailable otherwise.
func (x *Index) Ping(context.Context) error {
	if err := x.begin(); err != nil {
		return err
	}
	defer x.calls.Done()
	return x.prove()
}

// prove commits a small transaction. After one that failed it first proves room for what was in that: a small one may find
// free pages in a file that cannot grow.
func (x *Index) prove() error {
	x.proving.Lock()
	defer x.proving.Unlock()
	x.mu.RLock()
	lacking := x.lacking
	x.mu.RUnlock()
	if lacking > 0 {
		if err := disk.ProbeSpace(x.cfg.Dir, lacking); err != nil {
			return errNotWritten(err)
		}
	}
	err := x.update(0, func(tx *bbolt.Tx) error { return tx.Bucket(bucketMeta()).Put([]byte("probe"), []byte{1}) })
	x.mu.Lock()
	defer x.mu.Unlock()
	if err == nil && x.lacking == lacking {
		x.lacking = 0
	}
	return err
}

// Check returns nil when alias takes writes: after a transaction that failed, it proves that one comes about again.
func (x *Index) Check(_ context.Context, name string) error {
	if err := x.begin(); err != nil {
		return err
	}
	defer x.calls.Done()
	if _, err := x.alias(name); err != nil {
		return err
	}
	x.mu.RLock()
	lacking := x.lacking
	x.mu.RUnlock()
	if lacking == 0 {
		return nil
	}
	return x.prove()
}

// Identity returns what was drawn when the alias was made.
func (x *Index) Identity(_ context.Context, name string) (string, error) {
	if err := x.begin(); err != nil {
		return "", err
	}
	defer x.calls.Done()
	a, err := x.alias(name)
	if err != nil {
		return "", err
	}
	return a.identity, nil
}

// Refresh waits for the moment between a transaction that is in the file and searches that are shown it: what was written, and told,
// is visible without.
func (x *Index) Refresh(ctx context.Context, name string) error {
	if err := x.begin(); err != nil {
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
	for a.shelf.behind(row) {
		if err := ctx.Err(); err != nil {
			return core.WrapError(core.CodeUnavailable, "waiting for the index was given up", err)
		}
		time.Sleep(fitPause)
	}
	return nil
}

// update runs one durable transaction that stores about size bytes, 0 for one that stores no documents, and remembers
// whether the file could be written. touched are the aliases whose saved tree or terms apply may change.
func (x *Index) update(size int, apply func(tx *bbolt.Tx) error, touched ...*alias) error {
	err := x.db.Update(apply)
	x.mu.Lock()
	switch {
	case err != nil:
		x.lacking = min(max(roomLeast, 2*int64(size), x.lacking), roomMost)
	case size > 0:
		x.lacking = 0
	}
	x.mu.Unlock()
	if err == nil {
		return nil
	}
	return errNotWritten(errors.Join(err, x.forget(touched)))
}

func errNotWritten(err error) error {
	return core.WrapError(core.CodeUnavailable, "the index could not be written", err)
}

// forget brings back what aliases knew of the file before a transaction that failed.
func (x *Index) forget(touched []*alias) error {
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
