package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/tidwall/gjson"

	"tutti/internal/core/datamodel"
)

// maxListed bounds the analyses that a report names.
const maxListed = 10

// AnalysesReport is the part of a Report about stored analyses and their types.
type AnalysesReport struct {
	// Read is the number of analyses that were read. Cut is set if there may be others: reading ends after half of the time of Inspect.
	Read int
	Cut  bool
	// NotObjects is the number of analyses whose experiment, or the info of a file, is not an object; Named are the first of them, as
	// study/id.
	NotObjects int
	Named      []string
	// Types are all versions of the analysis types, by name and version, with their schemas and options as registered.
	Types []datamodel.AnalysisType
}

// analyses reads the analyses and their types.
func (r *Report) analyses(ctx context.Context, db Conn) error {
	rows, err := db.QueryContext(ctx,
		"SELECT name, version, schema, options FROM analysis_type ORDER BY name, version")
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var t datamodel.AnalysisType
		var schema string
		var options []byte
		if err := rows.Scan(&t.Name, &t.Version, &schema, &options); err != nil {
			return err
		}
		if err := json.Unmarshal(options, &t.Options); err != nil {
			return err
		}
		t.Schema = []byte(schema)
		r.Analyses.Types = append(r.Analyses.Types, t)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	scan, cancel := ctx, context.CancelFunc(func() {})
	if end, ok := ctx.Deadline(); ok {
		scan, cancel = context.WithTimeout(ctx, time.Until(end)/2)
	}
	defer cancel()
	if err = r.Analyses.read(scan, db); err != nil && scan.Err() != nil && ctx.Err() == nil {
		r.Analyses.Cut = true
		return nil
	}
	return err
}

func (a *AnalysesReport) read(ctx context.Context, db Conn) error {
	rows, err := db.QueryContext(ctx, "SELECT study, id, body FROM analysis ORDER BY seq")
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var study, id string
		var body []byte
		if err := rows.Scan(&study, &id, &body); err != nil {
			return err
		}
		a.Read++
		if !hasObjects(body) {
			if a.NotObjects++; len(a.Named) < maxListed {
				a.Named = append(a.Named, study+"/"+id)
			}
		}
	}
	return rows.Err()
}

// hasObjects reports whether the members of an analysis that the index takes only as objects are objects, or missing.
func hasObjects(body []byte) bool {
	found := gjson.GetManyBytes(body, "experiment", "files")
	valid := !found[0].Exists() || found[0].IsObject()
	found[1].ForEach(func(_, file gjson.Result) bool {
		info := file.Get("info")
		valid = valid && (!info.Exists() || info.IsObject())
		return valid
	})
	return valid
}
