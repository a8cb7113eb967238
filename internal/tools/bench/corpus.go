package bench

import (
	"fmt"
	"io"
	"slices"

	"tutti/internal/tools/testkit"
)

// seed makes the generated analyses identical in every process and run.
const seed = 11

// corpus is a set of generated Song analyses.
type corpus struct {
	studies []string
	// analyses are the analyses of all studies, study by study.
	analyses []testkit.Analysis
	// bytes is the size of their bodies.
	bytes int64
}

// generate generates records analyses, evenly over the studies.
func generate(studies, records int) *corpus {
	c := &corpus{studies: testkit.GenerateStudies(studies), analyses: make([]testkit.Analysis, 0, records)}
	for i, study := range c.studies {
		n := (records - len(c.analyses)) / (studies - i)
		c.analyses = append(c.analyses, testkit.GenerateAnalyses(seed, study, n)...)
	}
	for i := range c.analyses {
		c.bytes += int64(len(c.analyses[i].Body))
	}
	return c
}

// each is the mean size of an analysis in bytes.
func (c *corpus) each() float64 { return float64(c.bytes) / float64(len(c.analyses)) }

// serve starts a Song server with the analyses. The caller must close it.
func (c *corpus) serve() (*testkit.SongServer, error) {
	s, err := testkit.NewSong(testkit.SongConfig{})
	if err != nil {
		return nil, err
	}
	for _, study := range c.studies {
		s.AddStudy(study)
	}
	for part := range slices.Chunk(c.analyses, 10_000) {
		s.PutAll(part...)
	}
	return s, nil
}

// UpstreamConfig configures ServeUpstream.
type UpstreamConfig struct {
	Studies, Records int
}

// ServeUpstream runs a Song server with generated analyses: it prints its address to out, and stops when in ends.
func ServeUpstream(cfg UpstreamConfig, in io.Reader, out io.Writer) error {
	s, err := generate(cfg.Studies, cfg.Records).serve()
	if err != nil {
		return err
	}
	defer s.Close()
	if _, err := fmt.Fprintln(out, addressPrefix+s.URL()); err != nil {
		return fmt.Errorf("printing the address: %w", err)
	}
	return untilClosed(in)
}
