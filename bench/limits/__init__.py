"""What the parts could do if nothing of ours were behind them."""
