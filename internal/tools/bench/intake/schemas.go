package intake

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"tutti/internal/store"
	"tutti/internal/tools/bench/direct"
	"tutti/internal/tools/bench/results"
	"tutti/internal/tools/bench/testbed"
	"tutti/schemas"
)

// AnalysisTypes measures reading an analysis type over HTTP, and validating an analysis directly.
func AnalysisTypes(ctx context.Context, b *testbed.Testbed) (_ *results.Report, err error) {
	t, err := startLocal(ctx, b, "")
	if t != nil {
		defer func() { err = errors.Join(err, t.Stop(ctx)) }()
	}
	if err != nil {
		return nil, err
	}
	l, err := direct.NewLoad(t.App.URL())
	if err != nil {
		return nil, err
	}
	report := &results.Report{What: fmt.Sprintf("GET /schemas/{name}, the latest version and all versions of a type, over %d connections for %s a run, "+
		"asked from within this process; and the validation of a 2 KB analysis with 2 files on one CPU", direct.Connections, b.Sizes.LoadFor)}
	request := l.Request("GET", "/schemas/"+localType, nil)
	rates := results.Figure{Name: "GET /schemas/{name}, a second", Target: results.AtLeast(15_000)}
	p99 := results.Figure{Name: "GET /schemas/{name}, p99, ms", Target: results.AtMost(5)}
	for i := range b.Sizes.Pairs + 1 {
		got, err := l.Run(ctx, b.Sizes.LoadFor, func(int, int) []byte { return request })
		if err != nil {
			return nil, err
		}
		if i == 0 { // warm-up
			continue
		}
		b.Say("schemas: run %d: %s a second", i, results.Number(got.PerSecond))
		rates.Values, p99.Values = append(rates.Values, got.PerSecond), append(p99.Values, results.QuantileUp(got.Ms, 0.99))
	}
	validation, err := validation(ctx, b)
	if err != nil {
		return nil, err
	}
	report.Add(rates, p99, validation)
	return report, nil
}

// validation measures schemas.Service.Validate.
func validation(ctx context.Context, b *testbed.Testbed) (_ results.Figure, err error) {
	figure := results.Figure{Name: "validation of an analysis, µs", Target: results.AtMost(80)}
	dir, err := b.NewFolder()
	if err != nil {
		return figure, err
	}
	s, err := store.Open(ctx, store.Config{Dir: filepath.Join(dir, "store")})
	if err != nil {
		return figure, err
	}
	defer func() { err = errors.Join(err, s.Close(context.WithoutCancel(ctx))) }()
	service, err := schemas.New(s, schemas.Config{})
	if err != nil {
		return figure, err
	}
	if _, err := service.Register(ctx, []byte(localRegistration)); err != nil {
		return figure, err
	}
	const analyses = 2000
	bodies := make([][]byte, analyses)
	for i := range bodies {
		if bodies[i], err = localAnalysis(i); err != nil {
			return figure, err
		}
	}
	for run := range b.Sizes.Pairs + 1 {
		began := time.Now()
		for _, body := range bodies {
			if _, err := service.Validate(ctx, localStudy, string(body)); err != nil {
				return figure, err
			}
		}
		if run > 0 { // the first run is the warm-up
			figure.Values = append(figure.Values, time.Since(began).Seconds()*1e6/analyses)
		}
	}
	return figure, nil
}
