create table leases (
  name       text collate "C" primary key,
  id         uuid,        -- of the holder; null while free
  token      bigint,
  expires_at timestamptz
) with (fillfactor = 50); -- leaves room for updates that change no index

create sequence tokens;
