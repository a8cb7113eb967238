package download

import (
	"cmp"
	"context"
	"io"
	"time"

	"tutti/internal/catalogue"
	"tutti/internal/core"
	"tutti/internal/search"
)

// Defaults of Config.
const (
	// DefaultMaxFiles is how many files a download has at most unless Config says otherwise.
	DefaultMaxFiles = 20
	// DefaultMaxColumns is how many columns a file has at most unless Config says otherwise.
	DefaultMaxColumns = 1000
	// DefaultMaxConcurrent is how many downloads are made at once unless Config says otherwise.
	DefaultMaxConcurrent = 16
	// DefaultMaxSpoolBytes is how large a file in an archive is at most, compressed, unless Config says otherwise.
	DefaultMaxSpoolBytes = 4 << 30
	// DefaultMaxWait is how long a client may make a download wait unless Config says otherwise.
	DefaultMaxWait = time.Minute
	// DefaultMinRate is how many bytes a second it has to take beyond that unless Config says otherwise.
	DefaultMinRate = 32 << 10
	// retryAfter is when a download that was refused for others may be tried again.
	retryAfter = 5 * time.Second
)

// Models are the catalogues that can be downloaded from.
type Models interface {
	// Model returns the catalogue of an id, nil when there is none that is available.
	Model(id string) *catalogue.Model
}

// Searches gives catalogues as callers see them.
type Searches interface {
	View(m *catalogue.Model, who core.Principal) *search.View
}

// Config configures a Service. The zero value is the default.
type Config struct {
	// MaxFiles, MaxColumns and MaxConcurrent bound the files of a download, the columns of a file, and the downloads at once, of
	// which a caller has what its Accounts say.
	// Defaults DefaultMaxFiles, DefaultMaxColumns and DefaultMaxConcurrent.
	MaxFiles, MaxColumns, MaxConcurrent int
	// MaxRows is how many documents a file has at most where the catalogue's configuration does not say. Default: all.
	MaxRows int64
	// SpoolDir is where the files of an archive are kept, compressed, until their size is known. Default: the system's folder for
	// temporary files.
	SpoolDir string
	// MaxSpoolBytes bounds each of those files, in bytes. Default DefaultMaxSpoolBytes.
	MaxSpoolBytes int64
	// MaxWait is how long a client may make a download wait by taking it slowly, beyond what it would need at MinRate bytes a
	// second for what it has taken; then the download is broken off. Defaults DefaultMaxWait and DefaultMinRate.
	MaxWait time.Duration
	MinRate int64
	// Metrics may be nil.
	Metrics *Metrics
	// Now is the clock, which the files in an archive have their times from and waits are measured by. Default time.Now.
	Now func() time.Time
}

func (c Config) validate() error {
	if c.MaxFiles < 0 || c.MaxColumns < 0 || c.MaxConcurrent < 0 || c.MaxRows < 0 || c.MaxSpoolBytes < 0 || c.MaxWait < 0 || c.MinRate < 0 {
		return core.NewError(core.CodeInvalid, "a bound of downloads must not be negative")
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

// Service makes downloads. It may be used concurrently.
type Service struct {
	models   Models
	searches Searches
	cfg      Config
	// limiter are those of the downloads in flight.
	limiter limiter
}

// New makes a Service. CodeInvalid for a bad Config.
func New(models Models, searches Searches, cfg Config) (*Service, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	return &Service{models: models, searches: searches, cfg: cfg, limiter: limiter{max: cfg.MaxConcurrent, byAccount: map[string]int64{}}}, nil
}

// Download makes the files that r asks for, of the documents of a catalogue that who may see, and writes them to what begin gives:
// one as it is, several in an archive. begin is called when everything about them was checked and the first documents were read.
//
// Errors before that: CodeNotFound when there is no such catalogue or it is not available, CodeForbidden when it offers no
// downloads, CodeInvalid for params at fault, with pointers to it, CodeOverloaded when too many downloads are made, and those of
// the index. After it, an error means that what was written is not the whole; CodeUnavailable also when the client takes it too
// slowly (Config.MaxWait).
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
	jobs := make([]*job, len(o.files))
	for i := range o.files {
		if jobs[i], err = prepare(ctx, view, o, &o.files[i], s.cfg); err != nil {
			return o, err
		}
	}
	name := cmp.Or(o.fileName, m.Definition().DocumentType, m.Definition().ID)
	if o.archive {
		return o, s.archive(ctx, jobs, core.DownloadHead{ContentType: core.MediaArchive, FileName: archiveName(name)}, begin)
	}
	j := jobs[0]
	w := &lazyWriter{head: core.DownloadHead{ContentType: j.format.contentType(), FileName: withExtension(name, j.format)}, begin: begin}
	rows, err := j.run(ctx, w)
	s.cfg.Metrics.wrote(j.format, rows)
	if err == nil && w.w == nil { // a file without a byte
		_, err = begin(w.head)
	}
	return o, err
}

// lazyWriter begins a download with its first bytes.
type lazyWriter struct {
	head  core.DownloadHead
	begin core.BeginDownload
	w     io.Writer
}

var _ io.Writer = (*lazyWriter)(nil)

// Write passes bytes on.
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
