package demo

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"

	"github.com/tidwall/gjson"

	"tutti/internal/tools/testkit/dataset"
)

// examples are values of the demo that replace those of the OpenAPI document's examples, so that Swagger's "Execute" works. They are
// safe for concurrent use.
type examples struct{ values atomic.Pointer[[]string] }

// pairs returns each value of the document followed by the demo's; none before the demo has finished its steps.
func (e *examples) pairs() []string {
	if values := e.values.Load(); values != nil {
		return *values
	}
	return nil
}

// fill creates an API key and sets the values that the OpenAPI document names: repository, organization, records, a job, a job over a list of
// ids, a dead letter, a published analysis of the built-in repository, the file of another and the key.
func (d *demo) fill(ctx context.Context, study string, listed []dataset.Analysis, jobID, letter, published string) error {
	status, key, err := d.client.try(ctx, http.MethodPost, "/keys", []byte(`{"name": "example", "scopes": ["`+study+`.READ"]}`))
	if err == nil && status/100 != 2 {
		err = statusError(status, key)
	}
	if err != nil {
		return fmt.Errorf("creating an API key: %w", err)
	}
	list, err := d.client.read(ctx, http.MethodPost, "/index/repository/"+repositoryCode+"/organization/"+study+"/ids",
		[]byte(listed[0].ID), http.Header{"Content-Type": {"text/plain"}})
	if err != nil {
		return fmt.Errorf("indexing a list of ids: %w", err)
	}
	status, files, err := d.client.try(ctx, http.MethodGet, "/entities", nil)
	if err == nil && status/100 != 2 {
		err = statusError(status, files)
	}
	if err != nil {
		return fmt.Errorf("listing files: %w", err)
	}
	d.examples.values.Store(&[]string{
		"song.ca", repositoryCode, "PACA-CA", study,
		"9a8f1c9e-4f0b-4c57-8f1c-9e4f0b4c5713", listed[0].ID, "0b6cd7a2-5d0e-4b0c-8a34-6f1f2c7a9d10", listed[1].ID,
		"0196a1f0-7a3f-7e21-8b7d-2f5c1a9e3d44", jobID, "0196a1f0-7a41-7b02-9c3d-5e6f708192a3", gjson.GetBytes(list, "jobId").String(),
		"3f9c1e7a5b2d4c60", letter,
		"909614f0-ceeb-11e5-8498-af7e4d100685", published, "4f9c2d1a7b3e", key.Get("id").String(),
		"b63dff38-e239-5a5d-9c36-ec851049fd12", files.Get(`content.#(gnosId!="` + published + `").id`).String(),
	})
	return nil
}
