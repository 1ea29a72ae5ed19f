"""The questions that the posterior of true counts answers, and the answers by listing them."""
