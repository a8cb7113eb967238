package download

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"

	"tutti/internal/core"
	"tutti/internal/filter/query"
	"tutti/internal/index"
	"tutti/internal/search/download/extract"
	"tutti/internal/search/view"
)

// job is one validated file.
type job struct {
	view    *view.View
	format  Format
	name    string
	request index.StreamRequest
	reader  *extract.Reader
	encoder encoder
	// maxRows is the maximum number of documents, 0 for all.
	maxRows int64
}

// wholeDocumentShare is the share of all fields with values from which on the whole document is cheaper than its parts.
const wholeDocumentShare = 0.6

// prepare validates a file and returns its job.
func prepare(ctx context.Context, view *view.View, o *params, f *file, cfg Config) (*job, error) {
	j := &job{view: view, format: f.format, name: f.fileName}
	var err error
	if j.request.Filter, err = filter(ctx, view, f); err != nil {
		return nil, err
	}
	if j.request.Sort, err = sortKeys(view, f.sort); err != nil {
		return nil, err
	}
	if j.maxRows, err = limit(view, o, f, cfg.MaxRows); err != nil {
		return nil, err
	}
	c := newColumnPlanner(view, o.arranger, cfg.MaxColumns)
	for _, w := range f.columns {
		if err := c.add(w); err != nil {
			return nil, err
		}
	}
	rows, err := c.rows(f.uniqueBy, f.uniqueByAt)
	if err != nil {
		return nil, err
	}
	if len(c.columns) == 0 && !f.format.delimited() {
		return j, j.wholeDocuments(f, rows)
	}
	if len(c.columns) == 0 {
		if err := c.addShown(o.arranger); err != nil {
			return nil, err
		}
	}
	c.listed(rows)
	j.request.Source = source(c, rows)
	j.reader = extract.NewReader(extract.NewPlan(c.paths, rows))
	if f.format.delimited() {
		j.encoder = newDelimitedEncoder(f, c.columns)
	} else {
		j.encoder = newObjectEncoder(f, c.columns)
	}
	return j, nil
}

// wholeDocuments sets up a file of unchanged documents: below the nesting prefix, because clients do not know what is outside.
func (j *job) wholeDocuments(f *file, rows []string) error {
	if len(rows) > 0 {
		return invalid(f.uniqueByAt, "requires columns: without them, each document is one row")
	}
	prefix := j.view.Model().Definition().NestingPrefix
	if prefix != "" {
		j.request.Source.Paths = []string{prefix}
	}
	j.reader = extract.NewReader(extract.NewPlan([]string{prefix}, nil))
	j.encoder = &documentEncoder{frame{array: f.format == JSON}}
	return nil
}

// filter translates the filter of a file into an index query.
func filter(ctx context.Context, view *view.View, f *file) (*query.Node, error) {
	parsed, err := view.Parse(f.filter)
	if err != nil {
		return nil, below(err, f.filterAt)
	}
	n, err := view.Lower(ctx, parsed)
	return n, below(err, f.filterAt)
}

// sortKeys returns the sort keys of a file, with a unique key last. Without requested keys it returns none: engines return
// unsorted documents twice as fast.
func sortKeys(view *view.View, wishes []sortRequest) ([]index.Sort, error) {
	if len(wishes) == 0 {
		return nil, nil
	}
	identity := view.Identity()
	var keys []index.Sort
	for _, w := range wishes {
		key, err := sortKey(view, w)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
		if key.Field.Path == identity.Field.Path {
			return keys, nil
		}
	}
	return append(keys, identity), nil
}

func sortKey(view *view.View, w sortRequest) (index.Sort, error) {
	name := w.name
	if dotted := strings.ReplaceAll(name, "__", "."); !isField(view, name) && isField(view, dotted) {
		name = dotted
	}
	if name == "id" && !isField(view, name) {
		name = "_id"
	}
	key, err := view.SortKey(name, index.Sort{Descending: w.descending, Mode: w.mode, MissingFirst: w.missingFirst})
	if err != nil {
		return key, invalid(w.at, core.MessageOf(err))
	}
	return key, nil
}

func isField(view *view.View, name string) bool {
	_, known := view.Field(name)
	return known
}

// limit returns the maximum number of documents of a file, 0 for all. A client can lower it. For clients of Arranger this
// requires allowCustomMaxRows, which also allows them to raise it, as in Arranger.
func limit(view *view.View, o *params, f *file, most int64) (int64, error) {
	var configured struct {
		AllowCustomMaxRows bool   `json:"allowCustomMaxRows"`
		MaxRows            *int64 `json:"maxRows"`
	}
	if raw := view.Model().Definition().Downloads; len(raw) > 0 {
		if err := json.Unmarshal(raw, &configured); err != nil {
			return 0, core.WrapError(core.CodeInternal, "reading the downloads of the catalogue", err)
		}
	}
	if configured.MaxRows != nil {
		most = *configured.MaxRows
	}
	switch {
	case f.maxRows == 0:
		return most, nil
	case configured.AllowCustomMaxRows:
		return f.maxRows, nil
	case o.arranger:
		return most, nil
	case most == 0:
		return f.maxRows, nil
	default:
		return min(most, f.maxRows), nil
	}
}

// source returns the source filter for the columns.
func source(c *columnPlanner, rows []string) index.Source {
	paths := slices.Clone(c.paths)
	if len(rows) > 0 { // a document without any of the columns has rows too
		if innermost := rows[len(rows)-1]; !slices.ContainsFunc(paths, func(p string) bool { return p == innermost || strings.HasPrefix(p, innermost+".") }) {
			paths = append(paths, innermost)
		}
	}
	if len(paths) == 0 {
		return index.Source{None: true}
	}
	leaves := 0
	for name := range c.model.Names() {
		if _, leaf := c.view.Field(name); leaf {
			leaves++
		}
	}
	if float64(len(paths)) > wholeDocumentShare*float64(leaves) {
		return index.Source{}
	}
	return index.Source{Paths: paths}
}

// errEnough ends a stream when no more documents are needed.
var errEnough = errors.New("no more documents are wanted")

// run writes the file, and returns the number of its rows.
func (j *job) run(ctx context.Context, w io.Writer) (rows int64, err error) {
	out := &buffer{w: w}
	out.b = j.encoder.head(out.b)
	documents := int64(0)
	var id string
	write := func(row *extract.Row) error {
		out.reserve(row)
		out.b = j.encoder.row(out.b, id, row)
		rows++
		if len(out.b) < flushAt {
			return nil
		}
		return out.flush()
	}
	err = j.view.Stream(ctx, view.KindDownload, j.request, func(hits []index.Hit) error {
		if err := ctx.Err(); err != nil {
			return clientGone(err)
		}
		for i := range hits {
			id = hits[i].ID
			if err := j.reader.Rows(hits[i].Source, write); err != nil {
				return err
			}
			if documents++; documents == j.maxRows {
				return errEnough
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return rows, err
	}
	out.b = j.encoder.tail(out.b)
	return rows, out.flush()
}
