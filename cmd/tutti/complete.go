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
	// completionTimeout is the time limit for a server's answer to a completion.
	completionTimeout = time.Second
	completionIDs     = 50
)

// complete sets the completions of a flag of cmd to values. Files are never completed.
func complete(cmd *cobra.Command, flag string, values ...string) {
	// It fails for a flag that does not exist or already has completions; the tests of the completion detect both.
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// completeIDs returns a function that completes the first most arguments with ids from the server. If the server does not answer
// within completionTimeout, it completes nothing and prints nothing.
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
		ctx, cancel := context.WithTimeout(ctx, completionTimeout)
		defer cancel()
		found, err := ids(ctx, c)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return found, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

// jobIDs returns completions for the newest jobs.
func jobIDs(ctx context.Context, c *client.Client) ([]cobra.Completion, error) {
	page, err := c.Jobs(ctx, client.JobFilter{Limit: completionIDs})
	if err != nil {
		return nil, err
	}
	return describeJobs(page.Jobs), nil
}

// openJobIDs returns completions for the newest jobs that have not ended.
func openJobIDs(ctx context.Context, c *client.Client) ([]cobra.Completion, error) {
	var open []client.Job
	for _, state := range []core.JobState{core.JobPaused, core.JobRunning, core.JobQueued} {
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

// deadLetterIDs returns completions for the newest dead letters.
func deadLetterIDs(ctx context.Context, c *client.Client) ([]cobra.Completion, error) {
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
