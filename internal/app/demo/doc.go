// Package demo runs tutti on embedded defaults against a repository of its own, so that a newcomer sees the main job
// work. It drives the app over HTTP, as any client would.
package demo
