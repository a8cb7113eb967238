package bench

import (
	"context"
	"errors"
	"os"

	"tutti/internal/app"
	"tutti/internal/config"
	"tutti/internal/config/setting"
	"tutti/internal/core"
	"tutti/internal/tools/bench/direct"
	"tutti/internal/upstream"
)

// The repository of a bench, as in every document.
const (
	repositoryName    = "Bench repository"
	repositoryOwner   = "tutti"
	repositoryCountry = "CA"
)

// block returns what tutti adds to each document of the repository at upstreamURL.
func block(upstreamURL, alias string) []byte {
	return upstream.RepositoriesBlock(core.Repository{
		Code: direct.RepositoryCode, Type: core.TypeSong, URL: upstreamURL, IndexName: alias, Name: repositoryName,
		Organization: repositoryOwner, Country: repositoryCountry,
	})
}

// tutti is a complete app in this process with its own directory and default settings.
type tutti struct {
	app    *app.App
	client *direct.Client
	dir    string
	alias  string
}

// settings returns the configuration of a server as environment variables: its directory, its repository and its engine, the embedded
// index when engineURL is empty. Everything else is the default.
func settings(dir, upstreamURL, engineURL, alias string) []string {
	return variables(map[string]string{
		"server.listen": "127.0.0.1:0", "dataDir": dir, "index.url": engineURL,
		"repositories[0].code": direct.RepositoryCode, "repositories[0].type": string(core.TypeSong),
		"repositories[0].url": upstreamURL, "repositories[0].indexName": alias, "repositories[0].name": repositoryName,
		"repositories[0].organization": repositoryOwner, "repositories[0].country": repositoryCountry,
	})
}

// startTutti runs an app on a repository and an engine, the embedded index when engineURL is empty. The caller must stop it.
func (b *bench) startTutti(ctx context.Context, upstreamURL, engineURL, alias string) (*tutti, error) {
	dir, err := b.newFolder()
	if err != nil {
		return nil, err
	}
	return b.startApp(ctx, dir, alias, settings(dir, upstreamURL, engineURL, alias))
}

// startApp runs an app in this process, configured only by environment variables. The caller must stop it.
func (b *bench) startApp(ctx context.Context, dir, alias string, variables []string) (*tutti, error) {
	cfg, err := config.Load("", variables)
	if err != nil {
		return nil, err
	}
	a, err := app.New(cfg, app.Options{Version: b.Version})
	if err != nil {
		return nil, err
	}
	if err := a.Start(ctx); err != nil {
		return nil, err
	}
	return &tutti{app: a, client: direct.NewClient(a.URL()), dir: dir, alias: alias}, nil
}

// variables returns values of the configuration, by their paths, as environment variables.
func variables(values map[string]string) []string {
	list := make([]string, 0, len(values))
	for path, value := range values {
		list = append(list, setting.Variable(path)+"="+value)
	}
	return list
}

// stop stops the app and removes its directory.
func (t *tutti) stop(ctx context.Context) error {
	t.client.Close()
	err := t.app.Stop(context.WithoutCancel(ctx))
	return errors.Join(err, os.RemoveAll(t.dir))
}

// count returns the number of documents in the app's index.
func (t *tutti) count(ctx context.Context) (int64, error) {
	if err := t.app.Index().Refresh(ctx, t.alias); err != nil {
		return 0, err
	}
	return t.app.Index().Count(ctx, t.alias, core.IndexScope{})
}
