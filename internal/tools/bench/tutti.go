package bench

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"

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

// The built-in metadata repository of a bench.
const (
	localStudy = "BENCH"
	localType  = "bench_experiment"
	localAlias = "analyses" // the default repository's
)

// localRegistration is an analysis type like those of portals: some enumerations, patterns, dates and nested objects.
const localRegistration = `{"name": "` + localType + `", "options": {"fileTypes": ["BAM", "BAI", "VCF"]}, "schema": {
  "type": "object", "required": ["experiment", "workflow"],
  "properties": {
    "experiment": {"type": "object", "required": ["platform", "libraryStrategy", "sequencedOn"], "properties": {
      "platform": {"enum": ["ILLUMINA", "PACBIO_SMRT", "ONT"]},
      "libraryStrategy": {"enum": ["WGS", "WXS", "RNA-Seq"]},
      "readLength": {"type": "integer", "minimum": 1},
      "sequencedOn": {"type": "string", "format": "date"},
      "center": {"type": "string", "pattern": "^[A-Za-z0-9 .-]{1,64}$"}}},
    "workflow": {"type": "object", "required": ["name", "version"], "properties": {
      "name": {"type": "string"}, "version": {"type": "string", "pattern": "^\\d+\\.\\d+\\.\\d+$"},
      "inputs": {"type": "array", "items": {"type": "object", "required": ["analysisId"], "properties": {
        "analysisId": {"type": "string"}, "kind": {"enum": ["normal", "tumour"]}}}}}},
    "samples": {"type": "array", "minItems": 1, "items": {"type": "object", "required": ["submitterSampleId", "specimen", "donor"],
      "properties": {
        "submitterSampleId": {"type": "string", "maxLength": 64},
        "sampleType": {"enum": ["Total DNA", "Total RNA", "Amplified DNA"]},
        "specimen": {"type": "object", "required": ["submitterSpecimenId"], "properties": {
          "submitterSpecimenId": {"type": "string"}, "specimenTissueSource": {"type": "string"},
          "tumourNormalDesignation": {"enum": ["Normal", "Tumour"]}}},
        "donor": {"type": "object", "required": ["submitterDonorId"], "properties": {
          "submitterDonorId": {"type": "string"}, "gender": {"enum": ["Male", "Female", "Other"]}}}}}}}}}`

// localAnalysis returns an analysis of 2 KB with two files; the same number returns the same analysis.
func localAnalysis(number int) ([]byte, error) {
	r := rand.New(rand.NewPCG(uint64(number), 11)) //nolint:gosec // data of a benchmark
	file := func(kind string, i int) map[string]any {
		sum := make([]byte, 16)
		for j := range sum {
			sum[j] = byte(r.Uint32())
		}
		return map[string]any{
			"dataType": "Aligned Reads", "fileName": fmt.Sprintf("%08d-%d.wgs.grch38.%s", number, i, strings.ToLower(kind)),
			"fileSize": r.Int64N(1 << 40), "fileType": kind, "fileAccess": "controlled", "fileMd5sum": hex.EncodeToString(sum),
			"info": map[string]any{"dataCategory": "Sequencing Reads", "analysisTools": []string{"BWA-MEM:0.7.17", "biobambam2:2.0.95"}},
		}
	}
	sample := func(kind string) map[string]any {
		return map[string]any{
			"submitterSampleId": fmt.Sprintf("SA-%08d-%s", number, kind), "sampleType": "Total DNA",
			"specimen": map[string]any{
				"submitterSpecimenId": fmt.Sprintf("SP-%08d-%s", number, kind), "specimenTissueSource": "Solid tissue",
				"tumourNormalDesignation": kind,
			},
			"donor": map[string]any{"submitterDonorId": fmt.Sprintf("DO-%08d", number), "gender": "Female"},
		}
	}
	body, err := json.Marshal(map[string]any{
		"studyId": localStudy, "analysisType": map[string]any{"name": localType},
		"experiment": map[string]any{
			"platform": "ILLUMINA", "libraryStrategy": "WGS", "readLength": 150, "sequencedOn": "2026-03-01",
			"center": "Example Institute of Genomics", "notes": strings.Repeat("An experiment of the benchmark. ", 18),
		},
		"workflow": map[string]any{
			"name": "DNA Seq Alignment", "version": "1.5.4",
			"inputs": []map[string]any{{"analysisId": "7e1a9cd7-3e57-4b5a-a0c1-4dd3b1b64b1a", "kind": "normal"}},
		},
		"samples": []map[string]any{sample("Normal"), sample("Tumour")},
		"files":   []map[string]any{file("BAM", 0), file("BAI", 1)},
	})
	if err != nil {
		return nil, core.WrapError(core.CodeInternal, "encoding an analysis", err)
	}
	return body, nil
}

// startLocal runs an app with only the built-in metadata repository, the default, on a store: SQLite when storeURL is empty. Its study and
// analysis type exist. The caller must stop it.
func (b *bench) startLocal(ctx context.Context, storeURL string) (*tutti, error) {
	dir, err := b.newFolder()
	if err != nil {
		return nil, err
	}
	t, err := b.startApp(ctx, dir, localAlias, variables(map[string]string{
		"server.listen": "127.0.0.1:0", "dataDir": dir, "store.url": storeURL,
	}))
	if err != nil {
		return nil, err
	}
	return t, registerLocal(ctx, t.client)
}

// registerLocal adds the study and the analysis type of the built-in metadata repository.
func registerLocal(ctx context.Context, c *direct.Client) error {
	_, err := c.Call(ctx, "POST", "/schemas", "application/json", []byte(localRegistration))
	if err == nil {
		_, err = c.Call(ctx, "POST", "/studies/"+localStudy, "application/json", []byte(`{"name":"A study of the benchmark"}`))
	}
	return err
}
