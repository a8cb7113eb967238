package download

import (
	"cmp"
	"context"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"tutti/internal/core"
	"tutti/internal/search/catalogue"
	"tutti/internal/search/view"
)

// Defaults of Config.
const (
	DefaultMaxFiles      = 20
	DefaultMaxColumns    = 1000
	DefaultMaxConcurrent = 16
	DefaultMaxSpoolBytes = 4 << 30
	DefaultMaxWait       = time.Minute
	DefaultMinRate       = 32 << 10 // bytes per second
)

// retryAfter is when to retry a download that was rejected because of the limit.
const retryAfter = 5 * time.Second

// Models returns the catalogues that can be downloaded from.
type Models interface {
	// Model returns the available catalogue with an ID, nil for none.
	Model(id string) *catalogue.Model
}

// Searches returns catalogues with the permissions of callers.
type Searches interface {
	View(m *catalogue.Model, who core.Principal) *view.View
}

// Config is the configuration of a Service. The zero value is the default.
type Config struct {
	// MaxFiles, MaxColumns and MaxConcurrent limit the files of a download, the columns of a file, and the concurrent downloads,
	// which callers share by their Accounts. Defaults DefaultMaxFiles, DefaultMaxColumns and DefaultMaxConcurrent.
	MaxFiles, MaxColumns, MaxConcurrent int
	// MaxRows is the maximum number of documents of a file if the catalogue's configuration does not set one. Default: all.
	MaxRows int64
	// SpoolDir is where the compressed files of an archive are stored until their size is known. Default: the system's folder for
	// temporary files.
	SpoolDir string
	// MaxSpoolBytes limits each of those files, in bytes. Default DefaultMaxSpoolBytes.
	MaxSpoolBytes int64
	// MaxWait is how long a slow client may block a download, in addition to the time that the bytes it has read take at MinRate
	// bytes per second; then the download is aborted. Defaults DefaultMaxWait and DefaultMinRate.
	MaxWait time.Duration
	MinRate int64
	// Metrics may be nil.
	Metrics *Metrics
	// Now is the clock, for the times of files in an archive and for waits. Default time.Now.
	Now func() time.Time
}

func (c Config) validate() error {
	if c.MaxFiles < 0 || c.MaxColumns < 0 || c.MaxConcurrent < 0 || c.MaxRows < 0 || c.MaxSpoolBytes < 0 || c.MaxWait < 0 || c.MinRate < 0 {
		return core.NewError(core.CodeInvalid, "a limit of downloads must not be negative")
	}
	return nil
}

func (c Config) withDefaults() Config {
	c.MaxFiles = cmp.Or(c.MaxFiles, DefaultMaxFiles)
	c.MaxColumns = cmp.Or(c.MaxColumns, DefaultMaxColumns)
	c.MaxConcurrent = cmp.Or(c.MaxConcurrent, DefaultMaxConcurrent)
	c.MaxSpoolBytes = cmp.Or(c.MaxSpoolBytes, DefaultMaxSpoolBytes)
	c.MaxWait = cmp.Or(c.MaxWait, DefaultMaxWait)
	c.MinRate = cmp.Or(c.MinRate, DefaultMinRate)
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// Service produces downloads. It is safe for concurrent use.
type Service struct {
	models   Models
	searches Searches
	cfg      Config
	// limiter limits the downloads in flight.
	limiter limiter
}

// New returns a Service. CodeInvalid for an invalid Config.
func New(models Models, searches Searches, cfg Config) (*Service, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	return &Service{models: models, searches: searches, cfg: cfg, limiter: limiter{max: cfg.MaxConcurrent, byAccount: map[string]int64{}}}, nil
}

// Download writes the files of r, with the documents of a catalogue that the caller who may see, to the writer that begin
// returns: one file directly, several in an archive. It calls begin after validation, once the first documents are read.
//
// Errors before that: CodeNotFound if there is no such catalogue or it is unavailable, CodeForbidden if its downloads are
// disabled, CodeInvalid for invalid params, with pointers, CodeOverloaded if there are too many downloads, and those of the
// index. An error after it means that the written file is incomplete; it is CodeUnavailable also if the client reads too slowly
// (Config.MaxWait).
func (s *Service) Download(ctx context.Context, catalogueID string, who core.Principal, r core.DownloadRequest, begin core.BeginDownload) error {
	m := s.models.Model(catalogueID)
	if m == nil {
		return core.NewError(core.CodeNotFound, "the catalogue is not available")
	}
	begun := false
	o, err := s.download(ctx, m, who, r, func(head core.DownloadHead) (io.Writer, error) {
		w, err := begin(head)
		begun = err == nil
		return &slowClientWriter{w: w, now: s.cfg.Now, grace: s.cfg.MaxWait, rate: s.cfg.MinRate}, err
	})
	s.cfg.Metrics.ended(labelOf(o), begun, err)
	return err
}

func (s *Service) download(ctx context.Context, m *catalogue.Model, who core.Principal, r core.DownloadRequest, begin core.BeginDownload) (*params, error) {
	if m.Definition().DisableDownloads {
		return nil, &core.Error{
			Code: core.CodeForbidden, Message: "downloads are disabled for this catalogue",
			Hint: "unset disableDownloads in the configuration of the catalogue to allow them",
		}
	}
	o, err := parseParams(r.Params, r.Accept, s.cfg)
	if err != nil {
		return nil, err
	}
	release, err := s.limiter.acquire(r.Caller)
	if err != nil {
		return o, err
	}
	defer release()
	view := s.searches.View(m, who)
	defer view.Log(ctx)
	jobs := make([]*job, len(o.files))
	for i := range o.files {
		if jobs[i], err = prepare(ctx, view, o, &o.files[i], s.cfg); err != nil {
			return o, err
		}
		jobs[i].request.Caller = r.Caller
	}
	name := cmp.Or(o.fileName, m.Definition().DocumentType, m.Definition().ID)
	if o.archive {
		return o, s.archive(ctx, jobs, core.DownloadHead{ContentType: core.MediaArchive, FileName: archiveName(name)}, begin)
	}
	j := jobs[0]
	w := &lazyWriter{head: core.DownloadHead{ContentType: j.format.contentType(), FileName: withExtension(name, j.format)}, begin: begin}
	rows, err := j.run(ctx, w)
	s.cfg.Metrics.wrote(j.format, rows)
	if err == nil && w.w == nil { // an empty file
		_, err = begin(w.head)
	}
	return o, err
}

// lazyWriter calls begin with the first bytes.
type lazyWriter struct {
	head  core.DownloadHead
	begin core.BeginDownload
	w     io.Writer
}

var _ io.Writer = (*lazyWriter)(nil)

// Write writes to the underlying writer.
func (l *lazyWriter) Write(b []byte) (int, error) {
	if l.w == nil {
		w, err := l.begin(l.head)
		if err != nil {
			return 0, err
		}
		l.w = w
	}
	return l.w.Write(b)
}

// limiter limits concurrent downloads.
type limiter struct {
	max int

	mu    sync.Mutex
	inUse int
	// byAccount counts the downloads of each account.
	byAccount map[string]int64
}

// acquire reserves a download until release is called. CodeOverloaded if the caller's limit or the total is reached; a known
// caller without a download may always start one.
func (p *limiter) acquire(c core.Caller) (release func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	accounts := c.Accounts(int64(p.max))
	full := p.inUse >= p.max && (!c.Known || p.byAccount[c.ID] > 0)
	if full || slices.ContainsFunc(accounts, func(a core.Account) bool { return p.byAccount[a.ID] >= a.Max }) {
		return nil, &core.Error{
			Code: core.CodeOverloaded, Message: "too many concurrent downloads", Hint: "try again later", RetryAfter: retryAfter,
		}
	}
	p.add(accounts, 1)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.add(accounts, -1)
	}, nil
}

// add adds n downloads. The caller holds the lock.
func (p *limiter) add(accounts []core.Account, n int) {
	p.inUse += n
	for _, a := range accounts {
		if p.byAccount[a.ID] += int64(n); p.byAccount[a.ID] == 0 {
			delete(p.byAccount, a.ID)
		}
	}
}

// slowClientWriter aborts a download whose client reads too slowly. A slow client occupies one of the concurrent downloads and,
// while documents are read, a snapshot of the index. It may block the download for the grace time plus the time that its bytes
// take at the minimum rate. The time that the server needs to produce the file does not count.
type slowClientWriter struct {
	w     io.Writer
	now   func() time.Time
	grace time.Duration
	// rate is in bytes per second.
	rate   int64
	taken  int64
	waited time.Duration
}

var _ io.Writer = (*slowClientWriter)(nil)

// Write writes to the underlying writer.
func (p *slowClientWriter) Write(b []byte) (int, error) {
	began := p.now()
	n, err := p.w.Write(b)
	p.waited += p.now().Sub(began)
	p.taken += int64(n)
	if err == nil && (p.waited-p.grace).Seconds() > float64(p.taken)/float64(p.rate) {
		err = &core.Error{
			Code: core.CodeUnavailable, Message: "writing a download: the client reads it too slowly",
			Hint: "request fewer documents or columns at once",
		}
	}
	return n, err
}

// Metrics counts downloads; nil disables it. The label format is a file format or archive; outcome is complete, refused (failed
// before the first byte) or cut (failed after it).
type Metrics struct {
	downloads *prometheus.CounterVec
	rows      *prometheus.CounterVec
}

// NewMetrics registers the metrics of this package with reg, once per reg.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	return &Metrics{
		downloads: promauto.With(reg).NewCounterVec(prometheus.CounterOpts{
			Name: "tutti_downloads_total", Help: "Downloads that have ended, by how.",
		}, []string{"format", "outcome"}),
		rows: promauto.With(reg).NewCounterVec(prometheus.CounterOpts{
			Name: "tutti_download_rows_total", Help: "Rows that were written to downloads.",
		}, []string{"format"}),
	}
}

// ended counts a download: cut if it failed after it had started.
func (m *Metrics) ended(format string, begun bool, err error) {
	if m == nil {
		return
	}
	outcome := "complete"
	switch {
	case err != nil && begun:
		outcome = "cut"
	case err != nil:
		outcome = "refused"
	}
	m.downloads.WithLabelValues(format, outcome).Inc()
}

func (m *Metrics) wrote(f Format, rows int64) {
	if m != nil {
		m.rows.WithLabelValues(f.String()).Add(float64(rows))
	}
}

// labelOf returns the label of the requested format.
func labelOf(o *params) string {
	switch {
	case o == nil:
		return "unknown"
	case o.archive:
		return "archive"
	default:
		return o.files[0].format.String()
	}
}

// clientGone returns the error of a download whose client has disconnected.
func clientGone(err error) error {
	return core.WrapError(core.CodeUnavailable, "writing a download: the client disconnected, or the server is stopping", err)
}
