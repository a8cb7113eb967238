// Command tutti-bench measures the tutti beside it on this machine.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"tutti/internal/tools/bench"
	"tutti/internal/tools/bench/standin"
	"tutti/internal/tools/bench/testbed"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run returns the exit code: 0, or 1 with the error on stderr.
func run(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := rootCommand()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(stderr, "tutti-bench:", err)
		return 1
	}
	return 0
}

func rootCommand() *cobra.Command {
	var cfg testbed.Config
	var server, against, jsonFile string
	root := &cobra.Command{
		Use:   "tutti-bench [name…]",
		Short: "Measure tutti's performance on this machine",
		Long: "Run the named benchmarks, by default all that can run, and print what each measures, the results, their\n" +
			"targets and the noise of the machine. The benchmarks are " + strings.Join(bench.Names(), ", ") + ".\n" +
			"Those that need Elasticsearch are skipped without --elasticsearch. Run them on an otherwise idle machine.\n\n" +
			"At the end is a table of all figures. A ratio compares two arms whose runs alternate, and its A/A arm the first of\n" +
			"them with itself: what is smaller than twice the spread of the A/A arm is printed as not resolved.",
		Example:       "  tutti-bench --quick\n  tutti-bench " + bench.Names()[0] + " --json figures.json",
		ValidArgs:     bench.Names(),
		Args:          cobra.OnlyValidArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, names []string) (err error) {
			if server != "" {
				cfg.Server = []string{server, "serve"}
			}
			if against != "" {
				cfg.Against = []string{against, "serve"}
			}
			if jsonFile != "" {
				var file *os.File
				if file, err = os.Create(jsonFile); err != nil {
					return err
				}
				defer func() { err = errors.Join(err, file.Close()) }()
				cfg.JSON = file
			}
			cfg.Names, cfg.Version = names, buildVersion()
			cfg.Out, cfg.Progress = cmd.OutOrStdout(), cmd.ErrOrStderr()
			_, err = bench.Run(cmd.Context(), cfg)
			return err
		},
	}
	root.AddCommand(upstreamCommand(), sinkCommand())
	flags := root.Flags()
	flags.StringVar(&server, "tutti", "", "the `executable` to measure; the tutti in the folder of this program by default")
	flags.StringVar(&against, "against", "", "another `executable`, such as the release before, that intake measures in turn with it")
	flags.StringVar(&cfg.ElasticsearchURL, "elasticsearch", os.Getenv("TUTTI_TEST_ELASTICSEARCH_URL"),
		"the `URL` of an Elasticsearch where indices named bench-… may be created and deleted; also TUTTI_TEST_ELASTICSEARCH_URL")
	flags.StringVar(&cfg.PostgresURL, "postgres", "", "the `URL` of an empty PostgreSQL database; its tables and rows are not removed")
	flags.IntVar(&cfg.Sizes.Records, "records", 0, fmt.Sprintf("the `number` of records of a backfill; 0 for the default, %d", testbed.DefaultSizes().Records))
	flags.IntVar(&cfg.Sizes.Pairs, "pairs", 0, fmt.Sprintf("the `number` of repetitions of each run; 0 for the default, %d", testbed.DefaultSizes().Pairs))
	flags.BoolVar(&cfg.Quick, "quick", false, "smaller sizes, for a first impression")
	flags.StringVar(&cfg.ProfileDir, "profile", "", "write CPU and heap profiles of additional runs to this `folder`")
	flags.StringVar(&jsonFile, "json", "", "also write all figures, with their targets and results, to this `file` as JSON")
	return root
}

// upstreamCommand returns the hidden command that serves a repository in a process of its own.
func upstreamCommand() *cobra.Command {
	var cfg standin.UpstreamConfig
	cmd := &cobra.Command{
		Use: testbed.UpstreamCommand, Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return standin.ServeUpstream(cfg, cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	cmd.Flags().IntVar(&cfg.Studies, "studies", 1, "")
	cmd.Flags().IntVar(&cfg.Records, "records", 1000, "")
	return cmd
}

// sinkCommand returns the hidden command that serves an engine that responds at once, in a process of its own.
func sinkCommand() *cobra.Command {
	var delay time.Duration
	cmd := &cobra.Command{
		Use: testbed.SinkCommand, Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return standin.ServeSink(delay, cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	cmd.Flags().DurationVar(&delay, "delay", 0, "")
	return cmd
}

// buildVersion returns the version that the Go tool recorded.
func buildVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "dev"
}
