package records

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"tutti/cmd/tutti/internal/client"
	"tutti/cmd/tutti/internal/client/display"
	"tutti/cmd/tutti/internal/command"
	"tutti/internal/base/printable"
	"tutti/internal/core"
)

// maxJobs is the largest limit that the server accepts for a list of jobs.
const maxJobs = 200

// JobsCommand returns tutti jobs.
func JobsCommand() *cobra.Command {
	var r command.Remote
	cmd := jobsListCommand(&r)
	cmd.Use = "jobs"
	cmd.Short = "List, show and cancel jobs"
	cmd.Long = "List jobs, the newest first (like tutti jobs list), or show or cancel one.\n\n" + command.LocalTimes
	cmd.Example = "  tutti jobs\n" +
		"  tutti jobs list --state running --repository song.collab\n" +
		"  tutti jobs show 0199b2a7-3c2f-7a01-9d7e-0d2f6c1f7a10 --watch\n" +
		"  tutti jobs cancel 0199b2a7-3c2f-7a01-9d7e-0d2f6c1f7a10"
	r.AddFlags(cmd)
	cmd.AddCommand(jobsListCommand(&r), jobsShowCommand(&r), jobsIDsCommand(&r), jobsCancelCommand(&r))
	return cmd
}

func jobsListCommand(r *command.Remote) *cobra.Command {
	var filter core.JobFilter
	var state string
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List jobs, the newest first",
		Long:    "List jobs, the newest first.\n\n" + command.LocalTimes,
		Example: "  tutti jobs list --state failed\n  tutti jobs list --repository song.collab --limit 5 --output json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := r.Client(cmd)
			if err != nil {
				return err
			}
			filter.State = core.JobState(state)
			page, err := c.Jobs(cmd.Context(), filter)
			return r.Print(cmd, page.Raw, err, func() error { return printJobs(cmd, page) })
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&filter.Repository, "repository", "", "only jobs of the repository with this `code`")
	flags.StringVar(&state, "state", "", "only jobs in this `state`: queued, running, paused, succeeded, partial, failed or cancelled")
	flags.Var(&command.Number{Target: &filter.Limit, Most: maxJobs}, "limit", "list at most this `number`, from 1 to 200 (default 50)")
	flags.StringVar(&filter.Cursor, "cursor", "", "continue a list from the `cursor` that it printed")
	command.Complete(cmd, "state", states()...)
	completeRepository(cmd, r)
	command.Complete(cmd, "limit")
	command.Complete(cmd, "cursor")
	return cmd
}

func states() []string {
	var names []string
	for _, state := range core.JobStates() {
		names = append(names, string(state))
	}
	return names
}

func printJobs(cmd *cobra.Command, page client.JobPage) error {
	out := cmd.OutOrStdout()
	if len(page.Jobs) == 0 {
		_, err := fmt.Fprintln(out, "no jobs")
		return err
	}
	table := display.NewTable("ID", "SCOPE", "STATE", ">FETCHED", ">EXPECTED", ">INDEXED", ">REMOVED", ">REJECTED", "QUEUED", "TOOK")
	for _, job := range page.Jobs {
		t := job.Totals
		table.Row(job.ID, display.ScopeOf(job), string(job.State), display.Count(t.Fetched), expected(t),
			display.Count(t.Indexed), display.Count(t.Removed), display.Count(t.Rejected), display.Time(job.QueuedAt), jobDuration(job))
	}
	if err := table.Write(out); err != nil {
		return err
	}
	return printMore(cmd, page.NextCursor)
}

// printMore prints how to list the next page.
func printMore(cmd *cobra.Command, cursor string) error {
	if cursor == "" {
		return nil
	}
	_, err := fmt.Fprintln(cmd.ErrOrStderr(), "more results: --cursor "+printable.Line(cursor))
	return err
}

// jobDuration returns how long a job ran, "" before its end.
func jobDuration(job client.Job) string {
	if job.StartedAt == nil || job.EndedAt == nil {
		return ""
	}
	return display.Duration(job.EndedAt.Sub(*job.StartedAt))
}

func jobsShowCommand(r *command.Remote) *cobra.Command {
	var watch bool
	cmd := &cobra.Command{
		Use:   "show <id>",
		Short: "Show a job and its organizations",
		Long: "Show a job, its totals and its first 100 organizations, failed and running ones first. With --watch wait until the job has ended, show its\n" +
			"progress, and exit like tutti index --wait: 0 when it succeeded, 2 when it ended partial, 1 otherwise. Without\n" +
			"--watch the exit code is 0 for a job that exists, whatever its state.\n\n" + command.LocalTimes,
		Example:           "  tutti jobs show 0199b2a7-3c2f-7a01-9d7e-0d2f6c1f7a10 --watch",
		Args:              command.Arguments(1, "pass the id of one job"),
		ValidArgsFunction: command.CompleteIDs(r, 1, jobIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := r.Client(cmd)
			if err != nil {
				return err
			}
			if watch {
				return waitForJob(cmd.Context(), cmd, c, r, args[0], 0)
			}
			job, err := c.Job(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return printJob(cmd, r, job)
		},
	}
	cmd.Flags().BoolVar(&watch, "watch", false, "wait until the job has ended, and show its progress")
	return cmd
}

func jobsCancelCommand(r *command.Remote) *cobra.Command {
	return &cobra.Command{
		Use:   "cancel <id>",
		Short: "Cancel a job",
		Long: "Cancel a job that is queued or running, and show it. Documents that it has written remain. It is an error if the\n" +
			"job has already ended.",
		Example:           "  tutti jobs cancel 0199b2a7-3c2f-7a01-9d7e-0d2f6c1f7a10",
		Args:              command.Arguments(1, "pass the id of one job"),
		ValidArgsFunction: command.CompleteIDs(r, 1, openJobIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := r.Client(cmd)
			if err != nil {
				return err
			}
			job, err := c.CancelJob(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return printJob(cmd, r, job)
		},
	}
}

func printJob(cmd *cobra.Command, r *command.Remote, job client.Job) error {
	out := cmd.OutOrStdout()
	if r.JSON() {
		return command.PrintJSON(out, job.Raw)
	}
	facts := []string{
		"id", job.ID, "scope", display.ScopeOf(job), "index", job.IndexName, "state", string(job.State),
		"error", display.ErrorText(job.Error), "cause", string(job.Cause), "queued", display.Time(job.QueuedAt),
		"started", optionalTime(job.StartedAt), "ended", optionalTime(job.EndedAt), "took", jobDuration(job), "records", display.JobTotals(job),
	}
	if job.RatePerSecond > 0 {
		facts = append(facts, "rate", display.Rate(job.RatePerSecond))
	}
	if job.ETASeconds != nil {
		facts = append(facts, "left", display.Duration(time.Duration(*job.ETASeconds)*time.Second))
	}
	if err := display.KeyValues(out, facts...); err != nil || len(job.Organizations) == 0 {
		return err
	}
	if _, err := fmt.Fprintln(out); err != nil {
		return err
	}
	table := display.NewTable("ORGANIZATION", "STATE", ">FETCHED", ">EXPECTED", ">INDEXED", ">STALE", ">REMOVED", ">REJECTED", ">EXCLUDED", "ERROR")
	for _, o := range job.Organizations {
		t := o.Totals
		table.Row(o.Organization, string(o.State), display.Count(t.Fetched), expected(t), display.Count(t.Indexed), display.Count(t.Stale),
			display.Count(t.Removed), display.Count(t.Rejected), display.Count(t.Excluded), display.ErrorText(o.Error))
	}
	if err := table.Write(out); err != nil {
		return err
	}
	if more := job.OrganizationsTotal - len(job.Organizations); more > 0 {
		_, err := fmt.Fprintf(out, "and %d more organizations: GET /jobs/%s/organizations\n", more, printable.Line(job.ID))
		return err
	}
	return nil
}

// expected returns the expected number of records, "" while it is unknown.
func expected(t core.Totals) string {
	if t.Expected <= 0 {
		return ""
	}
	return display.Count(t.Expected)
}

// optionalTime returns a time as text, "" for nil.
func optionalTime(t *time.Time) string {
	if t == nil {
		return ""
	}
	return display.Time(*t)
}
