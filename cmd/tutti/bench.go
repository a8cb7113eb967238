package main

import (
	"fmt"
	"math"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tutti/internal/tools/bench"
)

func benchCommand() *cobra.Command {
	var cfg bench.Config
	var output string
	cmd := &cobra.Command{
		Use:   "bench [name…]",
		Short: "Measure tutti's performance on this machine",
		Long: "Run the named benchmarks, by default all that can run, and print what each measures, the results, their\n" +
			"targets and the noise of the machine. The benchmarks are " + strings.Join(bench.Names(), ", ") + ".\n" +
			"Those that need Elasticsearch are skipped without --elasticsearch. Run them on an otherwise idle machine.",
		Example:   "  tutti bench --quick\n  tutti bench " + bench.Names()[0] + " --output json",
		ValidArgs: bench.Names(),
		RunE: func(cmd *cobra.Command, names []string) error {
			if output != "text" && output != "json" {
				return fmt.Errorf("--output is text or json, not %q", output)
			}
			cfg.Names, cfg.JSON, cfg.Version = names, output == "json", buildVersion()
			cfg.Out, cfg.Progress = cmd.OutOrStdout(), cmd.ErrOrStderr()
			_, err := bench.Run(cmd.Context(), cfg)
			return err
		},
	}
	cmd.AddCommand(benchChildren()...)
	flags := cmd.Flags()
	flags.StringVar(&cfg.ElasticsearchURL, "elasticsearch", os.Getenv("TUTTI_TEST_ELASTICSEARCH_URL"),
		"the `URL` of an Elasticsearch where indices named bench-… may be created and deleted; also TUTTI_TEST_ELASTICSEARCH_URL")
	flags.StringVar(&cfg.PostgresURL, "postgres", "", "the `URL` of an empty PostgreSQL database; its tables and rows are not removed")
	flags.Var(&number{&cfg.Sizes.Records, math.MaxInt}, "records", fmt.Sprintf("the `number` of records of a backfill (default %d)", bench.DefaultSizes().Records))
	flags.Var(&number{&cfg.Sizes.Pairs, math.MaxInt}, "pairs", fmt.Sprintf("the `number` of repetitions of each run (default %d)", bench.DefaultSizes().Pairs))
	flags.BoolVar(&cfg.Quick, "quick", false, "smaller sizes, for a first impression")
	flags.StringVar(&cfg.ProfileDir, "profile", "", "write CPU and heap profiles of additional runs to this `folder`")
	flags.StringVarP(&output, "output", "o", "text", "`text` or json")
	return cmd
}

// benchChildren returns the hidden commands that tutti bench starts as separate processes.
func benchChildren() []*cobra.Command {
	var upstream bench.UpstreamConfig
	serveUpstream := &cobra.Command{
		Use: bench.UpstreamCommand, Hidden: true, Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return bench.ServeUpstream(upstream, cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	serveUpstream.Flags().IntVar(&upstream.Studies, "studies", 1, "")
	serveUpstream.Flags().IntVar(&upstream.Records, "records", 1000, "")
	var delay time.Duration
	serveSink := &cobra.Command{
		Use: bench.SinkCommand, Hidden: true, Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return bench.ServeSink(delay, cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	serveSink.Flags().DurationVar(&delay, "delay", 0, "")
	return []*cobra.Command{serveUpstream, serveSink}
}
