-- The rollback that a deploy was current before.
ALTER TABLE deploys ADD COLUMN rolled_back_by TEXT;
