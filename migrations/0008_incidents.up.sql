-- Counts, over all replicas, of what should be rare, by the minute, for the admin page.

create table paddock.incidents (
    minute timestamptz primary key,
    expired bigint not null,
    revoked bigint not null,
    refused bigint not null
);
comment on table paddock.incidents is
    'Leases that expired or were revoked, and stale tokens that were refused, in each minute of the last hour.';
