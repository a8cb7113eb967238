package dataset

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/tidwall/gjson"
)

// ErrNoAnalysis is returned for JSON that is not an object with the string members analysisId, studyId and analysisState.
var ErrNoAnalysis = errors.New("not an analysis")

// Analysis is one analysis stored in a Song server.
type Analysis struct {
	ID    string
	Study string
	State string
	// Body is the analysis' JSON, served byte for byte.
	Body []byte
}

// ParseAnalysis parses the three members of body, which it keeps unchanged. Other JSON is ErrNoAnalysis.
func ParseAnalysis(body []byte) (Analysis, error) {
	if !gjson.ValidBytes(body) {
		return Analysis{}, fmt.Errorf("%w: not JSON", ErrNoAnalysis)
	}
	found := gjson.GetManyBytes(body, "analysisId", "studyId", "analysisState")
	for i, name := range []string{"analysisId", "studyId", "analysisState"} {
		if found[i].Type != gjson.String {
			return Analysis{}, fmt.Errorf("%w: no %s", ErrNoAnalysis, name)
		}
	}
	return Analysis{ID: found[0].String(), Study: found[1].String(), State: found[2].String(), Body: body}, nil
}

// WithState returns the analysis in another state; only that value changes in the body.
func (a Analysis) WithState(state string) Analysis {
	text, err := json.Marshal(state)
	found := gjson.GetBytes(a.Body, "analysisState")
	if err == nil && found.Index > 0 {
		a.Body = slices.Concat(a.Body[:found.Index], text, a.Body[found.Index+len(found.Raw):])
	}
	a.State = state
	return a
}

// LoadRecords loads the analyses of all *.json files of a directory, in name order: exports of Song's paginated call,
// {"analyses":[…]}. Their bytes are unchanged.
func LoadRecords(dir string) ([]Analysis, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", dir, err)
	}
	var all []Analysis
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading analyses: %w", err)
		}
		var page struct {
			Analyses []json.RawMessage `json:"analyses"`
		}
		if err := json.Unmarshal(content, &page); err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		for i, raw := range page.Analyses {
			a, err := ParseAnalysis(raw)
			if err != nil {
				return nil, fmt.Errorf("analysis %d of %s: %w", i, file, err)
			}
			all = append(all, a)
		}
	}
	return all, nil
}
