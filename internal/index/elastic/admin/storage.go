package admin

import (
	"context"
	"encoding/json"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"tutti/internal/core"
	"tutti/internal/index/elastic/flavour"
)

// HintStorage says what to do about an index that Unsuitable names.
const HintStorage = "use an index of index.mode standard with a stored _source: remove the setting from the mapping file or the cluster's index templates, " +
	"delete the index or move the alias away, and run the repository again"

// StorageRequest returns the request for how the indices of an alias keep their documents.
func StorageRequest(alias string) esapi.IndicesGetRequest {
	return esapi.IndicesGetRequest{Index: []string{alias}, FilterPath: []string{
		"*.settings.index.uuid,*.settings.index.mode,*.settings.index.mapping.source,*.settings.index.derived_source,*.mappings._source",
	}}
}

// Unsuitable returns the index in the response to StorageRequest whose documents would not be what was written, and why; "" for none.
func Unsuitable(response []byte) (name, why string) {
	var indices map[string]struct {
		Settings struct {
			Index struct {
				Mode    any `json:"mode"`
				Mapping struct {
					Source struct {
						Mode any `json:"mode"`
					} `json:"source"`
				} `json:"mapping"`
				Derived struct {
					Enabled any `json:"enabled"`
				} `json:"derived_source"`
			} `json:"index"`
		} `json:"settings"`
		Mappings struct {
			Source flavour.Source `json:"_source"`
		} `json:"mappings"`
	}
	if json.Unmarshal(response, &indices) != nil {
		return "", ""
	}
	for name, one := range indices {
		storage := flavour.StorageOf(map[string]any{
			"index.mode": one.Settings.Index.Mode, "index.mapping.source.mode": one.Settings.Index.Mapping.Source.Mode,
			"index.derived_source.enabled": one.Settings.Index.Derived.Enabled,
		}, one.Mappings.Source)
		if why := storage.Unsuitable(); why != "" {
			return name, why
		}
	}
	return "", ""
}

// CheckStorage returns core.ErrIndexUnsuitable if the index behind an alias would not return the documents that it was given. A cluster that does
// not say how it keeps them is trusted.
func (a *Reporter) CheckStorage(ctx context.Context, alias string) error {
	response, err := a.client.Do(ctx, StorageRequest(alias), nil)
	if err != nil {
		return nil //nolint:nilerr // a missing right; what lasts is the error of the requests that follow
	}
	name, why := Unsuitable(response.Body)
	if why == "" {
		return nil
	}
	return unsuitable(name, alias, why)
}

func unsuitable(name, alias, why string) error {
	return &core.Error{
		Code: core.CodeConflict, Message: "the index " + name + " of the alias " + alias + " cannot be used: " + why, Hint: HintStorage,
		Err: core.ErrIndexUnsuitable,
	}
}

// storage returns how an index with settings, by their full names, and mappings keeps its documents.
func storage(settings map[string]any, mappings json.RawMessage) flavour.Storage {
	var m struct {
		Source flavour.Source `json:"_source"`
	}
	_ = json.Unmarshal(mappings, &m) // of another form only the engine can judge
	return flavour.StorageOf(settings, m.Source)
}
