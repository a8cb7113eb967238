package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"tutti/internal/client"
	"tutti/internal/client/display"
	"tutti/internal/core"
)

const (
	// completionTime is how long somebody who presses tab is kept waiting for a server.
	completionTime = time.Second
	completionIDs  = 50
)

// complete makes the shell offer values for a flag of cmd, and never files. Nothing is offered where values is empty.
func complete(cmd *cobra.Command, flag string, values ...string) {
	// It fails for a flag that does not exist or that has its values already; the tests of the completion show either.
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// completeIDs makes the shell offer ids that the server has, for the first most arguments. A server that is away or slow
// offers nothing, and says nothing either.
func completeIDs(
	r *remote, most int, ids func(context.Context, *client.Client) ([]cobra.Completion, error),
) cobra.CompletionFunc {
	return func(cmd *cobra.Command, given []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(given) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		c, err := r.client()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx := cmd.Context()
		if ctx == nil {
			ctx = context.Background()
		}
		ctx, cancel := context.WithTimeout(ctx, completionTime)
		defer cancel()
		found, err := ids(ctx, c)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return found, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

// jobIDs offers the newest jobs.
func jobIDs(ctx context.Context, c *client.Client) ([]cobra.Completion, error) {
	page, err := c.Jobs(ctx, client.JobFilter{Limit: completionIDs})
	if err != nil {
		return nil, err
	}
	return describeJobs(page.Jobs), nil
}

// openJobIDs offers the newest jobs that have not ended.
func openJobIDs(ctx context.Context, c *client.Client) ([]cobra.Completion, error) {
	var open []client.Job
	for _, state := range []core.JobState{core.JobRunning, core.JobQueued} {
		page, err := c.Jobs(ctx, client.JobFilter{State: state, Limit: completionIDs})
		if err != nil {
			return nil, err
		}
		open = append(open, page.Jobs...)
	}
	return describeJobs(open), nil
}

func describeJobs(jobs []client.Job) []cobra.Completion {
	found := make([]cobra.Completion, 0, len(jobs))
	for _, job := range jobs {
		found = append(found, cobra.CompletionWithDesc(job.ID, display.Printable(display.ScopeOf(job)+", "+string(job.State))))
	}
	return found
}

// letterIDs offers the newest dead letters.
func letterIDs(ctx context.Context, c *client.Client) ([]cobra.Completion, error) {
	page, err := c.DeadLetters(ctx, client.DeadLetterFilter{Limit: completionIDs})
	if err != nil {
		return nil, err
	}
	found := make([]cobra.Completion, 0, len(page.DeadLetters))
	for _, l := range page.DeadLetters {
		found = append(found, cobra.CompletionWithDesc(l.ID, display.Printable(subjectOf(l)+", "+l.Reason)))
	}
	return found, nil
}
