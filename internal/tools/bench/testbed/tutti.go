package testbed

import (
	"context"
	"errors"
	"os"

	"tutti/internal/app"
	"tutti/internal/base/setting"
	"tutti/internal/config"
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

// Block returns what tutti adds to each document of the repository at upstreamURL.
func Block(upstreamURL, alias string) []byte {
	return upstream.RepositoriesBlock(core.Repository{
		Code: direct.RepositoryCode, Type: core.TypeSong, URL: upstreamURL, IndexName: alias, Name: repositoryName,
		Organization: repositoryOwner, Country: repositoryCountry,
	})
}

// Tutti is a complete app in this process with its own directory and default settings.
type Tutti struct {
	App    *app.App
	Client *direct.Client
	dir    string
	Alias  string
}

// Settings returns the configuration of a server as environment variables: its directory, its repository and its engine, the embedded
// index when engineURL is empty. Everything else is the default.
func Settings(dir, upstreamURL, engineURL, alias string) []string {
	return Variables(map[string]string{
		"server.listen": "127.0.0.1:0", "dataDir": dir, "index.url": engineURL,
		"repositories[0].code": direct.RepositoryCode, "repositories[0].type": string(core.TypeSong),
		"repositories[0].url": upstreamURL, "repositories[0].indexName": alias, "repositories[0].name": repositoryName,
		"repositories[0].organization": repositoryOwner, "repositories[0].country": repositoryCountry,
	})
}

// StartTutti runs an app on a repository and an engine, the embedded index when engineURL is empty. The caller must stop it.
func (b *Testbed) StartTutti(ctx context.Context, upstreamURL, engineURL, alias string) (*Tutti, error) {
	dir, err := b.NewFolder()
	if err != nil {
		return nil, err
	}
	return b.StartApp(ctx, dir, alias, Settings(dir, upstreamURL, engineURL, alias))
}

// StartApp runs an app in this process, configured only by environment variables. The caller must stop it.
func (b *Testbed) StartApp(ctx context.Context, dir, alias string, variables []string) (*Tutti, error) {
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
	return &Tutti{App: a, Client: direct.NewClient(a.URL()), dir: dir, Alias: alias}, nil
}

// Variables returns values of the configuration, by their paths, as environment variables.
func Variables(values map[string]string) []string {
	list := make([]string, 0, len(values))
	for path, value := range values {
		list = append(list, setting.Variable(path)+"="+value)
	}
	return list
}

// Stop stops the app and removes its directory.
func (t *Tutti) Stop(ctx context.Context) error {
	t.Client.Close()
	err := t.App.Stop(context.WithoutCancel(ctx))
	return errors.Join(err, os.RemoveAll(t.dir))
}

// Count returns the number of documents in the app's index.
func (t *Tutti) Count(ctx context.Context) (int64, error) {
	if err := t.App.Index().Refresh(ctx, t.Alias); err != nil {
		return 0, err
	}
	return t.App.Index().Count(ctx, t.Alias, core.IndexScope{})
}
