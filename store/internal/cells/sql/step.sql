alter sequence paddock.event_batch_ids increment by 64
