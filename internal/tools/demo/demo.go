package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"tutti/internal/app"
	"tutti/internal/config"
	"tutti/internal/tools/testkit"
	"tutti/internal/tools/testkit/dataset"
)

// DefaultListen is the default of Config.Listen.
const DefaultListen = "127.0.0.1:8080"

// Content of the demo's repositories.
const (
	studies         = 3
	analyses        = 2000
	organizations   = 2
	records         = 600 // total of the tabular repository
	seed            = 7
	repositoryCode  = "demo.song"
	indexName       = "demo-analyses"
	tabularCode     = "demo.lyric"
	tabularIndex    = "demo-clinical"
	changedAnalyses = 3
	// webhookSecret signs the notifications of the tabular repository's webhook. It protects only the demo.
	webhookSecret = "demo-secret"
)

// configuration is the demo's configuration file: listen address, data directory, the catalogues' directory and the repositories' URLs.
const configuration = `
server: {listen: %q}
dataDir: %q
catalogues: {dir: %q}
repositories:
  - code: ` + repositoryCode + `
    type: song
    url: %q
    indexName: ` + indexName + `
    name: Demo repository
    organization: tutti
    country: CA
    pageSize: 100
  - code: ` + tabularCode + `
    type: lyric
    url: %q
    indexName: ` + tabularIndex + `
    name: Demo clinical data
    organization: tutti
    country: CA
    pageSize: 50
    lyric: {categoryId: %q}
    notifications: {webhook: {secret: ` + webhookSecret + `}}
  - code: ` + builtInCode + `
    type: local
    indexName: ` + builtInIndex + `
    name: Demo built-in repository
    organization: tutti
    country: CA
`

// Config configures the demo. DataDir and Out are required.
type Config struct {
	// DataDir is the directory of queue, index and store; a second run continues with its data.
	DataDir string
	// Listen is the address of the HTTP server; when its port is in use, a free one is used. Default DefaultListen.
	Listen string
	// Out receives the demo's output.
	Out     io.Writer
	Logger  *slog.Logger
	Version string
	// Command starts tutti, for the commands that the demo prints: "tutti" by default.
	Command string
	// Once stops the demo after its last step.
	Once bool
}

// Run runs the demo's steps and then serves until ctx ends.
func Run(ctx context.Context, cfg Config) (err error) {
	began := time.Now()
	cfg.Command = cmp.Or(cfg.Command, "tutti")
	song, err := newSong()
	if err != nil {
		return err
	}
	defer song.Close()
	lyric, err := newLyric()
	if err != nil {
		return err
	}
	defer lyric.Close()
	dir, err := makeFolder(cfg.DataDir)
	if err != nil {
		return err
	}
	other, err := startPartner(ctx, cfg, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, other.stop(ctx)) }()
	var shown examples
	a, err := start(ctx, cfg, dir, song, lyric, other, &shown)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Stop(context.WithoutCancel(ctx))) }()

	d := &demo{cfg: cfg, out: cfg.Out, song: song, lyric: lyric, client: newClient(a.URL()), examples: &shown}
	d.say("tutti is ready after %s at %s, data in %s", time.Since(began).Round(time.Millisecond), a.URL(), cfg.DataDir)
	d.say("A metadata repository that speaks Song's protocol is at %s: %d studies, %d analyses.", song.URL(), studies, analyses)
	d.say("A tabular repository that speaks Lyric's protocol is at %s: %d organizations, %d records.\n",
		lyric.URL(), organizations, records)
	err = d.show(ctx)
	if err != nil && ctx.Err() != nil {
		return nil // interrupted
	}
	if err != nil || cfg.Once {
		return err
	}
	d.say("\nStill running; stop it with ctrl-c. The next run continues with the same data.")
	<-ctx.Done()
	d.say("stopping")
	return nil
}

// newSong starts the demo's metadata repository.
func newSong() (*testkit.SongServer, error) {
	s, err := testkit.NewSong(testkit.SongConfig{})
	if err != nil {
		return nil, err
	}
	left := analyses
	for i, study := range dataset.GenerateStudies(studies) {
		n := left / (studies - i)
		if i == 0 {
			n = analyses / 2
		}
		left -= n
		s.AddStudy(study)
		s.PutAll(dataset.GenerateAnalyses(seed, study, n)...)
	}
	return s, nil
}

// newLyric starts the demo's tabular repository.
func newLyric() (*testkit.LyricServer, error) {
	s, err := testkit.NewLyric(testkit.LyricConfig{Alias: "clinical"})
	if err != nil {
		return nil, err
	}
	for i := range organizations {
		name := fmt.Sprintf("CLINIC-%d", i+1)
		s.AddOrganizations(name)
		s.PutAll(dataset.GenerateRecords(seed, name, records/organizations)...)
	}
	return s, nil
}

// start runs the app with everything embedded.
func start(
	ctx context.Context, cfg Config, dir string, song *testkit.SongServer, lyric *testkit.LyricServer, other *partner,
	shown *examples,
) (*app.App, error) {
	listen, err := freeAddress(ctx, cfg.Listen)
	if err != nil {
		return nil, err
	}
	folder, err := writeCatalogues(dir)
	if err != nil {
		return nil, err
	}
	if err := other.join(folder); err != nil {
		return nil, err
	}
	c, err := config.Parse(fmt.Appendf(nil, configuration, listen, dir, folder, song.URL(), lyric.URL(), lyric.CategoryID()), nil)
	if err != nil {
		return nil, err
	}
	a, err := app.New(c, app.Options{Logger: cfg.Logger, Version: cfg.Version, Examples: shown.pairs})
	if err != nil {
		return nil, err
	}
	if err := a.Start(ctx); err != nil {
		return nil, err
	}
	return a, nil
}

// makeFolder creates the data directory and returns its absolute path.
func makeFolder(dataDir string) (string, error) {
	if err := os.MkdirAll(dataDir, 0o700); err != nil {
		return "", fmt.Errorf("creating the data directory: %w", err)
	}
	dir, err := filepath.Abs(dataDir)
	if err != nil {
		return "", fmt.Errorf("resolving the data directory: %w", err)
	}
	return dir, nil
}

// freeAddress returns listen, or the same host with a free port when its port is in use.
func freeAddress(ctx context.Context, listen string) (string, error) {
	if listen == "" {
		listen = DefaultListen
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", listen)
	if err == nil {
		return listen, l.Close()
	}
	host, _, splitErr := net.SplitHostPort(listen)
	if splitErr != nil {
		return "", fmt.Errorf("the address %q is not host:port: %w", listen, splitErr)
	}
	return net.JoinHostPort(host, "0"), nil
}
