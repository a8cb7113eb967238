package demo

import (
	"context"
	"crypto/md5" //nolint:gosec // the checksum that file descriptors carry
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/tidwall/gjson"
)

// The built-in metadata repository of the demo.
const (
	builtInCode  = "demo.local"
	builtInIndex = "demo-local"
	builtInStudy = "PANC-CA" // the first one of the other repository has this name, too
	submissions  = 4
)

// registrations returns the analysis types of the demo, as bodies of POST /schemas.
func registrations() []string {
	return []string{
		`{"name": "sequencing_experiment", "options": {"fileTypes": ["FASTQ", "BAM"]}, "schema": {
			"type": "object", "required": ["experiment"], "properties": {
				"experiment": {"type": "object", "required": ["platform", "libraryStrategy"], "properties": {
					"platform": {"type": "string", "enum": ["ILLUMINA", "PACBIO_SMRT", "ONT"]},
					"libraryStrategy": {"type": "string", "enum": ["WGS", "WXS", "RNA-Seq"]},
					"readLength": {"type": "integer", "minimum": 1},
					"sequencedOn": {"type": "string", "format": "date"}}}}}}`,
		`{"name": "variant_call", "options": {"fileTypes": ["VCF"]}, "schema": {
			"type": "object", "required": ["experiment", "workflow"], "properties": {
				"experiment": {"type": "object", "properties": {"variantClass": {"type": "string", "enum": ["SNV", "InDel", "SV"]}}},
				"workflow": {"type": "object", "required": ["name", "version"], "properties": {
					"name": {"type": "string"}, "version": {"type": "string", "pattern": "^\\d+\\.\\d+\\.\\d+$"}}}}}}`,
	}
}

// submission returns the i-th analysis of the demo: sequencing experiments and variant calls in turn.
func submission(i int) ([]byte, error) {
	name, file, kind := "sequencing_experiment", "reads", "FASTQ"
	analysis := map[string]any{
		"studyId": builtInStudy,
		"experiment": map[string]any{
			"platform": "ILLUMINA", "libraryStrategy": "WGS", "readLength": 150, "sequencedOn": fmt.Sprintf("2026-03-%02d", i+1),
		},
	}
	if i%2 == 1 {
		name, file, kind = "variant_call", "calls", "VCF"
		analysis["experiment"] = map[string]string{"variantClass": "SNV"}
		analysis["workflow"] = map[string]string{"name": "sanger-wgs", "version": "2.1." + strconv.Itoa(i)}
	}
	sum := md5.Sum([]byte(file + strconv.Itoa(i))) //nolint:gosec // as above
	analysis["analysisType"] = map[string]string{"name": name}
	analysis["files"] = []map[string]any{{
		"dataType": file, "fileName": fmt.Sprintf("%s-%d.%s", file, i+1, kind), "fileSize": 1 << (20 + i), "fileType": kind,
		"fileAccess": "controlled", "fileMd5sum": hex.EncodeToString(sum[:]),
	}}
	body, err := json.Marshal(analysis)
	if err != nil {
		return nil, fmt.Errorf("encoding an analysis: %w", err)
	}
	return body, nil
}

// builtIn registers analysis types, submits analyses to the built-in metadata repository and publishes them, which indexes them, and
// submits an invalid one. It returns the id of a published analysis.
func (d *demo) builtIn(ctx context.Context) (published string, err error) {
	d.say("\n6. The built-in metadata repository needs no other server: POST /schemas registers analysis types")
	for _, r := range registrations() {
		if err := d.register(ctx, r); err != nil {
			return "", err
		}
	}
	status, answer, err := d.client.try(ctx, http.MethodPost, "/studies/"+builtInStudy, []byte(`{"name":"A study of the demo"}`))
	if err == nil && status != http.StatusOK && status != http.StatusConflict { // 409: created by an earlier run
		err = statusError(status, answer)
	}
	if err != nil {
		return "", fmt.Errorf("creating a study: %w", err)
	}
	d.say("   Analyses are submitted, validated against their type, and published; indexing them needs no other request:")
	for i := range submissions {
		if published, err = d.submitAndPublish(ctx, i); err != nil {
			return "", err
		}
	}
	return published, d.submitInvalid(ctx)
}

// register registers an analysis type unless an earlier run registered it.
func (d *demo) register(ctx context.Context, registration string) error {
	name := gjson.Get(registration, "name").String()
	if status, _, err := d.client.try(ctx, http.MethodGet, "/schemas/"+name, nil); err != nil || status == http.StatusOK {
		return err
	}
	status, answer, err := d.client.try(ctx, http.MethodPost, "/schemas", []byte(registration))
	if err == nil && status != http.StatusOK {
		err = statusError(status, answer)
	}
	if err != nil {
		return fmt.Errorf("registering %s: %w", name, err)
	}
	d.say("   %s, version %s", name, answer.Get("version"))
	return nil
}

func (d *demo) submitAndPublish(ctx context.Context, i int) (id string, err error) {
	body, err := submission(i)
	if err != nil {
		return "", err
	}
	status, answer, err := d.client.try(ctx, http.MethodPost, "/submit/"+builtInStudy+"?allowDuplicates=true", body)
	if err == nil && status != http.StatusOK {
		err = statusError(status, answer)
	}
	if err != nil {
		return "", fmt.Errorf("submitting an analysis: %w", err)
	}
	id = answer.Get("analysisId").String()
	took, err := d.awaitOutcome(ctx, builtInIndex, "indexed", func() error {
		_, err := d.client.do(ctx, http.MethodPut, "/studies/"+builtInStudy+"/analysis/publish/"+id)
		return err
	})
	if err != nil {
		return "", err
	}
	d.say("   %s published   → indexed after %s", id, took)
	return id, nil
}

// submitInvalid submits an invalid analysis and shows the violations in the response.
func (d *demo) submitInvalid(ctx context.Context) error {
	body, err := json.Marshal(map[string]any{
		"studyId": builtInStudy, "analysisType": map[string]string{"name": "sequencing_experiment"},
		"experiment": map[string]any{"platform": "abacus", "readLength": -1},
		"files": []map[string]any{{
			"dataType": "reads", "fileName": "reads.txt", "fileSize": -5, "fileType": "TXT", "fileAccess": "open",
			"fileMd5sum": "not a checksum",
		}},
	})
	if err != nil {
		return fmt.Errorf("encoding an analysis: %w", err)
	}
	status, answer, err := d.client.try(ctx, http.MethodPost, "/submit/"+builtInStudy, body)
	if err != nil {
		return err
	}
	d.say("   One is invalid on purpose → %d %s:", status, answer.Get("errorId"))
	for _, v := range answer.Get("violations").Array() {
		d.say("     %-28s %s", v.Get("pointer"), v.Get("message"))
	}
	return nil
}

func statusError(status int, answer gjson.Result) error {
	return fmt.Errorf("%d: %s", status, answer.Get("detail"))
}
