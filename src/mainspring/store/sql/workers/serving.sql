-- Whether live workers serve a queue, and whether one of them has all of these labels.
select exists (select from worker where state = 'live' and queues @> array[:queue::text]) as has_queue,
       exists (select from worker where state = 'live' and queues @> array[:queue::text]
                                    and labels @> :labels::text[]) as has_labels
