package fleet_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/client/guard"
)

// work is the worker with the Go SDK.
func work(url, name string, size int) error {
	locks, err := client.New(client.Options{BaseURL: url})
	if err != nil {
		return err
	}
	var mu sync.Mutex
	say := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Printf(format+"\n", args...)
	}
	ctx, stop := context.WithCancel(context.Background())
	var holding, all sync.WaitGroup
	holding.Add(size)
	for i := range size {
		held, queue := fmt.Sprintf("%s:held:%d", name, i), name+":queue"
		all.Go(func() {
			o := guard.Options{TTL: 15 * time.Second, Retry: 30 * time.Second}
			err := guard.Do(context.Background(), locks, held, o, func(work context.Context, _ *guard.Lease) error {
				holding.Done()
				select {
				case <-ctx.Done():
				case <-work.Done():
				}
				return nil
			})
			if err != nil {
				say("lost %s: %v", held, err)
			}
		})
		all.Go(func() {
			holding.Wait()
			o := guard.Options{TTL: 15 * time.Second, Wait: guard.Forever, Holder: strconv.Itoa(i)}
			err := guard.Do(context.Background(), locks, queue, o, func(context.Context, *guard.Lease) error {
				say("turn %d", i)
				return nil
			})
			if err != nil {
				say("lost turn %d: %v", i, err)
			}
		})
	}
	holding.Wait()
	say("held")
	_, err = io.ReadAll(os.Stdin)
	stop()
	all.Wait()
	return err
}
