package records

import (
	"context"
	"math"

	"github.com/spf13/cobra"

	"tutti/cmd/tutti/internal/client"
	"tutti/cmd/tutti/internal/client/display"
	"tutti/cmd/tutti/internal/command"
	"tutti/internal/base/printable"
	"tutti/internal/core"
)

// repositoryCodes returns completions for the repositories of the server.
func repositoryCodes(ctx context.Context, c *client.Client) ([]cobra.Completion, error) {
	all, err := c.Repositories(ctx)
	if err != nil {
		return nil, err
	}
	found := make([]cobra.Completion, 0, len(all))
	for _, repository := range all {
		found = append(found, cobra.CompletionWithDesc(repository.Code, printable.Line(string(repository.Type)+", "+string(repository.State))))
	}
	return found, nil
}

// completeRepository completes the flag --repository of cmd with the codes of the server's repositories.
func completeRepository(cmd *cobra.Command, r *command.Remote) {
	// It fails only for a flag that does not exist.
	_ = cmd.RegisterFlagCompletionFunc("repository", command.CompleteIDs(r, math.MaxInt, repositoryCodes))
}

// jobIDs returns completions for the newest jobs.
func jobIDs(ctx context.Context, c *client.Client) ([]cobra.Completion, error) {
	page, err := c.Jobs(ctx, core.JobFilter{Limit: command.CompletionLimit})
	if err != nil {
		return nil, err
	}
	return describeJobs(page.Jobs), nil
}

// openJobIDs returns completions for the newest jobs that have not ended.
func openJobIDs(ctx context.Context, c *client.Client) ([]cobra.Completion, error) {
	var open []client.Job
	for _, state := range []core.JobState{core.JobPaused, core.JobRunning, core.JobQueued} {
		page, err := c.Jobs(ctx, core.JobFilter{State: state, Limit: command.CompletionLimit})
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
		found = append(found, cobra.CompletionWithDesc(job.ID, printable.Line(display.ScopeOf(job)+", "+string(job.State))))
	}
	return found
}

// deadLetterIDs returns completions for the newest dead letters.
func deadLetterIDs(ctx context.Context, c *client.Client) ([]cobra.Completion, error) {
	page, err := c.DeadLetters(ctx, core.DeadLetterFilter{Limit: command.CompletionLimit})
	if err != nil {
		return nil, err
	}
	found := make([]cobra.Completion, 0, len(page.DeadLetters))
	for _, l := range page.DeadLetters {
		found = append(found, cobra.CompletionWithDesc(l.ID, printable.Line(subjectOf(l.DeadLetter)+", "+l.Reason)))
	}
	return found, nil
}
