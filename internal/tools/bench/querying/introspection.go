package querying

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/tidwall/gjson"

	"tutti/internal/base/retry"
	"tutti/internal/core"
	"tutti/internal/filter/sqon"
	"tutti/internal/index"
	"tutti/internal/tools/bench/direct"
	"tutti/internal/tools/bench/results"
	"tutti/internal/tools/bench/testbed"
)

// The catalogues of a bench: their number, and the number of fields of each.
const (
	catalogues      = 20
	catalogueFields = 500
	// sqonValues is the number of values of the filter.
	sqonValues = 1000
)

// Introspection measures the endpoints that describe catalogues, parsing a large filter, and a start while the engine does not
// respond.
func Introspection(ctx context.Context, b *testbed.Testbed) (*results.Report, error) {
	report := &results.Report{What: fmt.Sprintf("the endpoints of introspection with %d catalogues of %d fields, over %d connections for %s a run, asked from "+
		"within this process; a filter of %d values, parsed and validated on one CPU; and a start with %[1]d catalogues on an engine that "+
		"does not answer", catalogues, catalogueFields, direct.Connections, b.Sizes.LoadFor, sqonValues)}
	if err := introspectionLoad(ctx, b, report); err != nil {
		return nil, err
	}
	filter, err := filter(b)
	if err != nil {
		return nil, err
	}
	report.Add(filter)
	refusing := results.Figure{Name: "start while the engine refuses connections, ms", Target: results.AtMost(1000)}
	silent := results.Figure{Name: "start while the engine accepts connections and says nothing, ms", Target: results.AtMost(1000)}
	for range b.Sizes.Pairs {
		for _, f := range []*results.Figure{&refusing, &silent} {
			took, err := startUnreachable(ctx, b, f == &silent)
			if err != nil {
				return nil, err
			}
			f.Values = append(f.Values, took.Seconds()*1e3)
		}
	}
	report.Add(refusing)
	report.Add(silent)
	return report, nil
}

// introspectionLoad loads each endpoint.
func introspectionLoad(ctx context.Context, b *testbed.Testbed, report *results.Report) (err error) {
	t, err := startCatalogues(ctx, b, "")
	if t != nil {
		defer func() { err = errors.Join(err, t.Stop(ctx)) }()
	}
	if err != nil {
		return err
	}
	if err := fillCatalogues(ctx, t); err != nil {
		return err
	}
	l, err := direct.NewLoad(t.App.URL())
	if err != nil {
		return err
	}
	details := make([][]byte, catalogues)
	for i := range details {
		details[i] = l.Request("GET", "/introspection/"+catalogueID(i), nil)
	}
	all := l.Request("GET", "/introspection", nil)
	language := l.Request("GET", "/introspection/sqon", nil)
	for _, endpoint := range []struct {
		name string
		next func(connection, i int) []byte
	}{
		{"GET /introspection", func(int, int) []byte { return all }},
		{"GET /introspection/{catalogueId}", func(c, i int) []byte { return details[(c+i)%catalogues] }},
		{"GET /introspection/sqon", func(int, int) []byte { return language }},
	} {
		rates := results.Figure{Name: endpoint.name + ", a second", Target: results.AtLeast(10_000)}
		p99 := results.Figure{Name: endpoint.name + ", p99, ms", Target: results.AtMost(5)}
		for i := range b.Sizes.Pairs + 1 {
			got, err := l.Run(ctx, b.Sizes.LoadFor, endpoint.next)
			if err != nil {
				return err
			}
			if i == 0 { // to warm up
				continue
			}
			b.Say("introspection: %s: run %d: %s a second", endpoint.name, i, results.Number(got.PerSecond))
			rates.Values, p99.Values = append(rates.Values, got.PerSecond), append(p99.Values, results.QuantileUp(got.Ms, 0.99))
		}
		report.Add(rates, p99)
	}
	return nil
}

func catalogueID(i int) string { return "bench-" + strconv.Itoa(i) }

// startCatalogues runs an app with catalogues on indexes that do not exist yet. The caller must stop it when it is not nil.
func startCatalogues(ctx context.Context, b *testbed.Testbed, engineURL string) (*testbed.Tutti, error) {
	dir, err := b.NewFolder()
	if err != nil {
		return nil, err
	}
	folder := filepath.Join(dir, "catalogues")
	for i := range catalogues {
		of := filepath.Join(folder, catalogueID(i))
		if err := os.MkdirAll(of, 0o700); err != nil {
			return nil, core.WrapError(core.CodeUnavailable, "creating a directory", err)
		}
		base := fmt.Appendf(nil, `{"documentType": "record", "esIndex": %q, "description": "Catalogue %d of the benchmark."}`, catalogueID(i), i)
		if err := os.WriteFile(filepath.Join(of, "base.json"), base, 0o600); err != nil {
			return nil, core.WrapError(core.CodeUnavailable, "writing a catalogue", err)
		}
	}
	return b.StartApp(ctx, dir, "", testbed.Variables(map[string]string{
		"server.listen": "127.0.0.1:0", "dataDir": dir, "index.url": engineURL, "catalogues.dir": folder,
	}))
}

// fillCatalogues creates the indexes, and waits until every catalogue is available.
func fillCatalogues(ctx context.Context, t *testbed.Tutti) error {
	properties := map[string]any{}
	for i := range catalogueFields {
		kind := []string{"keyword", "long", "date", "double", "boolean"}[i%5]
		properties[fmt.Sprintf("clinical_measurement_%03d", i)] = map[string]string{"type": kind}
	}
	mapping, err := json.Marshal(map[string]any{"properties": properties})
	if err != nil {
		return core.WrapError(core.CodeInternal, "encoding a mapping", err)
	}
	for i := range catalogues {
		if err := t.App.Index().Ensure(ctx, index.Spec{Alias: catalogueID(i), Mapping: mapping}); err != nil {
			return err
		}
	}
	for i := range catalogues {
		for {
			detail, err := t.Client.Call(ctx, "GET", "/introspection/"+catalogueID(i), "", nil)
			if err != nil {
				return err
			}
			if len(gjson.GetBytes(detail, "fields").Map()) == catalogueFields {
				break
			}
			if err := retry.Sleep(ctx, 10*time.Millisecond); err != nil {
				return err
			}
		}
	}
	return nil
}

// keywordCatalogue is a catalogue whose fields are keywords.
type keywordCatalogue struct{}

// Field returns a keyword field for every name.
func (keywordCatalogue) Field(string) (sqon.Field, bool) { return sqon.Field{Type: "keyword"}, true }

// filter measures the time to parse and validate a filter.
func filter(b *testbed.Testbed) (results.Figure, error) {
	figure := results.Figure{Name: fmt.Sprintf("a filter of %d values, parsed and validated, µs", sqonValues), Target: results.AtMost(200)}
	values := make([]string, sqonValues)
	for i := range values {
		values[i] = fmt.Sprintf("DO-%08d-%x", i*7919, i)
	}
	list, err := json.Marshal(values)
	if err != nil {
		return figure, core.WrapError(core.CodeInternal, "encoding a filter", err)
	}
	text := fmt.Appendf(nil, `{"op":"and","content":[{"op":"in","content":{"fieldName":"donor_id","value":%s}}]}`, list)
	const times = 500
	for run := range b.Sizes.Pairs + 1 {
		began := time.Now()
		for range times {
			f, err := sqon.Parse(text)
			if err == nil {
				err = f.Check(keywordCatalogue{})
			}
			if err != nil {
				return figure, err
			}
		}
		if run > 0 { // the first one is to warm up
			figure.Values = append(figure.Values, time.Since(began).Seconds()*1e6/times)
		}
	}
	return figure, nil
}

// startUnreachable returns the duration of a start while the engine refuses connections, or accepts them without responding, and checks
// that every catalogue is listed with the reason.
func startUnreachable(ctx context.Context, b *testbed.Testbed, silent bool) (took time.Duration, err error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, core.WrapError(core.CodeUnavailable, "opening a port", err)
	}
	if silent { // the kernel accepts
		defer func() { err = errors.Join(err, l.Close()) }()
	} else if err := l.Close(); err != nil {
		return 0, err
	}
	began := time.Now()
	t, err := startCatalogues(ctx, b, "http://"+l.Addr().String())
	if t != nil {
		defer func() { err = errors.Join(err, t.Stop(ctx)) }()
	}
	if err != nil {
		return 0, err
	}
	took = time.Since(began)
	summary, err := t.Client.Call(ctx, "GET", "/introspection", "", nil)
	if err != nil {
		return 0, err
	}
	for i := range catalogues {
		if code := gjson.GetBytes(summary, "catalogs."+catalogueID(i)+".error.code").String(); code != string(core.CatalogueConnectionError) {
			return 0, core.NewError(core.CodeInternal, fmt.Sprintf("the catalogue %s is listed with the error %q", catalogueID(i), code))
		}
	}
	return took, nil
}
