package testbed

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"tutti/internal/core"
)

// Sub-commands of the benchmarking program, which a bench starts as separate processes: UpstreamCommand runs ServeUpstream,
// SinkCommand ServeSink.
const (
	UpstreamCommand = "upstream"
	SinkCommand     = "sink"
)

// PreparationConcurrency is the number of concurrent submissions during preparation.
const PreparationConcurrency = 64

// Config configures a run. Only Out is required.
type Config struct {
	// Names are the benchmarks to run, all when empty.
	Names []string
	// ElasticsearchURL is a real Elasticsearch, in which the benchmarks create and remove indexes named bench-…. Without it
	// benchmarks that need a real engine are skipped.
	ElasticsearchURL string
	// PostgresURL is an empty PostgreSQL database, in which tables and rows remain. Without it benchmarks that need one are
	// skipped.
	PostgresURL string
	// Sizes are the sizes of the benchmarks; zero members are those of DefaultSizes or QuickSizes.
	Sizes Sizes
	// Quick uses QuickSizes for the members of Sizes that are zero.
	Quick bool
	// ProfileDir is the directory for CPU and heap profiles of additional runs; empty for none.
	ProfileDir string
	// Out receives the reports and the table of all figures, Progress the progress messages, JSON all figures as one JSON document;
	// none by default.
	Out, Progress, JSON io.Writer
	// Self is the benchmarking program, with arguments that come before a sub-command; this executable by default.
	Self []string
	// Server is the command that runs the server; "tutti serve" with the tutti beside this executable by default.
	Server []string
	// Against is the command of another server, such as that of an earlier release, which the benchmarks that can also measure; none by default.
	Against []string
	// Version is the program's version.
	Version string
}

// Sizes are the sizes of the benchmarks.
type Sizes struct {
	// Records is the number of analyses of a backfill, Studies the number of studies that they are in.
	Records, Studies int
	// Pairs is the number of repetitions of each comparison or run.
	Pairs int
	// Triggers is the number of consecutive triggers.
	Triggers int
	// Coalesced is the number of records that get Repeats triggers each while the index is down.
	Coalesced, Repeats int
	// Documents is the number of documents that a run writes to the embedded index directly, EmbeddedRecords the number that the
	// whole app indexes.
	Documents, EmbeddedRecords int
	// Notified is the number of records with notifications, NotifyRate the notifications per second, NotifyFor the duration.
	Notified, NotifyRate int
	NotifyFor            time.Duration
	// LoadFor is the duration of a load run.
	LoadFor time.Duration
	// Listed is the number of published analyses of the built-in metadata repository read page by page.
	Listed int
	// Searched is the number of analyses that a portal's pages are searched in.
	Searched int
	// EmbeddedSearched and EmbeddedLarge are the numbers of analyses in searches of the embedded index.
	EmbeddedSearched, EmbeddedLarge int
	// Downloaded is the number of analyses that are downloaded at once.
	Downloaded int
	// Organizations is the largest number of organizations with one record each, DeadLetters the number that is retried at once.
	Organizations, DeadLetters int
	// SlowBulk is how long the slow engine takes for one bulk request.
	SlowBulk time.Duration
}

// DefaultSizes returns the sizes that the targets apply to.
func DefaultSizes() Sizes {
	return Sizes{
		Records: 100_000, Studies: 20, Pairs: 5, Triggers: 200, Coalesced: 100, Repeats: 100,
		Documents: 50_000, EmbeddedRecords: 20_000, SlowBulk: 3 * time.Second,
		Notified: 20_000, NotifyRate: 2000, NotifyFor: 20 * time.Second,
		LoadFor: 5 * time.Second, Listed: 100_000, Searched: 60_000, EmbeddedSearched: 100_000, EmbeddedLarge: 1_000_000,
		Downloaded: 1_000_000, Organizations: 10_000, DeadLetters: 200_000,
	}
}

// QuickSizes returns sizes for a run of about a minute.
func QuickSizes() Sizes {
	return Sizes{
		Records: 10_000, Studies: 10, Pairs: 3, Triggers: 50, Coalesced: 20, Repeats: 50,
		Documents: 10_000, EmbeddedRecords: 5_000, SlowBulk: time.Second,
		Notified: 5_000, NotifyRate: 2000, NotifyFor: 3 * time.Second,
		LoadFor: time.Second, Listed: 5_000, Searched: 6_000, EmbeddedSearched: 10_000, EmbeddedLarge: 40_000,
		Downloaded: 100_000, Organizations: 1000, DeadLetters: 10_000,
	}
}

// or returns s with its zero members taken from d.
func (s Sizes) or(d Sizes) Sizes {
	for _, m := range []struct{ mine, other *int }{
		{&s.Records, &d.Records},
		{&s.Studies, &d.Studies},
		{&s.Pairs, &d.Pairs},
		{&s.Triggers, &d.Triggers},
		{&s.Coalesced, &d.Coalesced},
		{&s.Repeats, &d.Repeats},
		{&s.Documents, &d.Documents},
		{&s.EmbeddedRecords, &d.EmbeddedRecords},
		{&s.Notified, &d.Notified},
		{&s.NotifyRate, &d.NotifyRate},
		{&s.Listed, &d.Listed},
		{&s.Searched, &d.Searched},
		{&s.EmbeddedSearched, &d.EmbeddedSearched},
		{&s.EmbeddedLarge, &d.EmbeddedLarge},
		{&s.Downloaded, &d.Downloaded},
		{&s.Organizations, &d.Organizations},
		{&s.DeadLetters, &d.DeadLetters},
	} {
		if *m.mine == 0 {
			*m.mine = *m.other
		}
	}
	if s.SlowBulk == 0 {
		s.SlowBulk = d.SlowBulk
	}
	if s.NotifyFor == 0 {
		s.NotifyFor = d.NotifyFor
	}
	if s.LoadFor == 0 {
		s.LoadFor = d.LoadFor
	}
	return s
}

// validate sets the defaults and returns the first error.
func (c *Config) validate() error {
	if c.Out == nil {
		return core.NewError(core.CodeInternal, "Config.Out is required")
	}
	if c.Quick {
		c.Sizes = c.Sizes.or(QuickSizes())
	}
	c.Sizes = c.Sizes.or(DefaultSizes())
	for _, n := range []int{c.Sizes.Records, c.Sizes.Studies, c.Sizes.Pairs} {
		if n < 1 {
			return core.NewError(core.CodeInvalid, "the numbers of records, studies and pairs must be positive")
		}
	}
	if c.Sizes.Records < 4*c.Sizes.Studies {
		return core.NewError(core.CodeInvalid, fmt.Sprintf("%d studies need at least %d records", c.Sizes.Studies, 4*c.Sizes.Studies))
	}
	if c.Progress == nil {
		c.Progress = io.Discard
	}
	if len(c.Self) > 0 && len(c.Server) > 0 {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return core.WrapError(core.CodeInternal, "finding this program", err)
	}
	if len(c.Self) == 0 {
		c.Self = []string{self}
	}
	if len(c.Server) == 0 {
		c.Server = []string{filepath.Join(filepath.Dir(self), "tutti"), "serve"}
	}
	return nil
}
