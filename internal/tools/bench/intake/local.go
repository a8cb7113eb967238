package intake

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"

	"tutti/internal/core"
	"tutti/internal/tools/bench/direct"
	"tutti/internal/tools/bench/testbed"
)

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
func startLocal(ctx context.Context, b *testbed.Testbed, storeURL string) (*testbed.Tutti, error) {
	dir, err := b.NewFolder()
	if err != nil {
		return nil, err
	}
	t, err := b.StartApp(ctx, dir, localAlias, testbed.Variables(map[string]string{
		"server.listen": "127.0.0.1:0", "dataDir": dir, "store.url": storeURL,
	}))
	if err != nil {
		return nil, err
	}
	return t, registerLocal(ctx, t.Client)
}

// registerLocal adds the study and the analysis type of the built-in metadata repository.
func registerLocal(ctx context.Context, c *direct.Client) error {
	_, err := c.Call(ctx, "POST", "/schemas", "application/json", []byte(localRegistration))
	if err == nil {
		_, err = c.Call(ctx, "POST", "/studies/"+localStudy, "application/json", []byte(`{"name":"A study of the benchmark"}`))
	}
	return err
}
