create table leases (
  name       text collate "C" primary key,
  id         uuid,        -- whose it is; null while free
  token      bigint,
  expires_at timestamptz
) with (fillfactor = 50); -- room for updates that touch no index

create sequence tokens;
